"""Addresses of tracking servers without the credentials that they may hold."""

import re
from urllib.parse import unquote

_LONGEST = 500

_CREDENTIALS = re.compile(r"(?<=://)[^\s/?#'\"]*@")


def printable(uri: str) -> str:
    """The address without user and password."""
    return _CREDENTIALS.sub("", uri)


def redacted(text: str, uri: str) -> str:
    """The text in one short line, without the credentials that `uri` or it holds."""
    text = printable(" ".join(text.split()))
    if found := _CREDENTIALS.search(uri):
        secret = found.group()[:-1].split(":", 1)[-1]  # a user without a password is a token
        for form in filter(None, (secret, unquote(secret))):
            text = text.replace(form, "***")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
