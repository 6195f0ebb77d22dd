"""Whether anything listens at an address: asked once, briefly, since clients retry for minutes."""

import socket
from urllib.parse import urlsplit

ANSWER_SECONDS = 5.0


def check_listens(address: str) -> None:
    """OSError if nothing listens at HOST:PORT or SCHEME://HOST:PORT; without a port, nothing."""
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), ANSWER_SECONDS).close()
