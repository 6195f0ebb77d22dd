"""Readable names: made from a sweep's options, found again by any prefix that is unique."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.errors import Refused

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,79}")
_FIRST = tuple(
    """amber bold brisk calm clear coral crisp deep eager early fair fine fleet fresh gentle
glad golden grand keen kind late light lively lucid lunar mellow mild neat noble patient plain
polar prime proud quick quiet rapid ready royal sharp silent silver smooth solar steady still
subtle swift true vivid warm wild wise young""".split()
)
_SECOND = tuple(
    """badger beaver bison bittern cedar condor crane curlew deer dolphin dunlin eagle egret
elm falcon fern finch fox gannet gull hare hawk heron ibis jay kestrel kite lark linnet lynx
marten merlin mole newt oak osprey otter owl pine plover puffin quail raven robin rook seal
shrike sparrow stork swan swift tern thrush vole walrus wren yew""".split()
)


def check_name(name: str, where: str | None = None) -> str:
    """The name, if it can be one; `where` says what else than `--name` it comes from.

    Raises:
        Refused: if it has other characters, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise Refused(
            f"{where or f'--name {name!r}'}: must be 1 to 80 letters, digits or . _ @ + - and "
            f"begin with a letter or digit"
        )
    return name


def generated(spaces: Sequence[str], tasks: Sequence[str], identity: dict[str, Any]) -> str:
    """A name for a sweep that was given none: the same for the same options."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).digest()
    words = f"{_FIRST[digest[0] % len(_FIRST)]}-{_SECOND[digest[1] % len(_SECOND)]}"
    number = int.from_bytes(digest[2:4], "big") % 100
    return f"{_some(spaces)}-{_some(tasks)}-{words}-{number:02d}"


def _some(names: Sequence[str]) -> str:
    more = f"+{len(names) - 1}" if len(names) > 1 else ""
    return names[0][:24] + more


def match(wanted: str, known: Iterable[str], kind: str) -> str:
    """The one known name that is `wanted`, or else begins with it.

    Raises:
        Refused: if there is none, or more than one.
    """
    names = list(known)
    if wanted in names:
        return wanted
    found = [name for name in names if name.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(f"{kind} {wanted!r} is not unique: {_list(found)}")
    raise Refused(f"no {kind} {wanted!r}; known: {_list(names) or 'none yet'}")


def _list(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
