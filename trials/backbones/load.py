"""Loading a backbone by known name, Hub id or folder."""

import importlib
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from trials.backbones.backbone import Backbone
from trials.backbones.files import BackboneError, check_family, locate, shape_of, unreachable
from trials.backbones.known import FAMILIES, find
from trials.backbones.shape import SHAPES, Shape

_PARTS = {AutoConfig: "configuration", AutoModel: "weights", AutoTokenizer: "tokenizer"}

log = logging.getLogger(__name__)


def read_config(backbone: str) -> Any:
    """The configuration of a backbone; of a known one without its files."""
    if known := find(backbone):
        return AutoConfig.for_model(known.family, **known.config)
    return _from_pretrained(AutoConfig, backbone)


def count_parameters(backbone: str) -> int:
    """How many weights a backbone has, counted without allocating one.

    Raises:
        BackboneError: if it cannot be found, or its family is not among `FAMILIES`.
    """
    config, shape, known = read_config(backbone), shape_of(backbone), find(backbone)
    pooled = {} if config.model_type not in FAMILIES else _family(backbone, config).model_options
    with torch.device("meta"):
        model = AutoModel.from_config(config, **pooled)
    head = shape.vocabulary * shape.width if known and known.untied_head else 0
    return sum(parameter.numel() for parameter in model.parameters()) + head


def load(backbone: str, device: torch.device) -> Backbone:
    """The frozen backbone with its tokenizer.

    Raises:
        BackboneError: if it cannot be found or read, or its family is not among `FAMILIES`.
    """
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    config = _from_pretrained(AutoConfig, backbone)
    family = _family(backbone, config)
    tokenizer = _tokenizer(backbone, SHAPES[config.model_type](config.to_dict()))
    model = _model(backbone, family)
    log.info("loaded backbone %s", backbone)
    return family(model.to(device), tokenizer)


def _family(backbone: str, config: Any) -> type[Backbone]:
    family = check_family(backbone, config.model_type)
    module = importlib.import_module(f"trials.backbones.{family}")
    cls: type[Backbone] = getattr(module, FAMILIES[family])
    return cls


def _model(backbone: str, family: type[Backbone]) -> Any:
    model, report = _from_pretrained(
        AutoModel,
        backbone,
        **family.model_options,
        use_safetensors=True,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    # transformers would draw these at random and go on
    wrong = sorted({*report["missing_keys"], *(key for key, *_ in report["mismatched_keys"])})
    if wrong:
        raise BackboneError(
            f"backbone {backbone}: its weights do not fit its configuration: {len(wrong)} are "
            f"missing or of another size, {wrong[0]} for one"
        )
    return model


def _tokenizer(backbone: str, shape: Shape) -> PreTrainedTokenizerBase:
    tokenizer = _from_pretrained(AutoTokenizer, backbone)
    # without its files, transformers makes one that knows the special tokens alone
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise BackboneError(f"backbone {backbone}: it has no tokenizer (tokenizer.json, vocab.*)")
    if max(tokenizer.get_vocab().values()) >= shape.vocabulary:
        raise BackboneError(
            f"backbone {backbone}: its tokenizer has {len(tokenizer)} tokens, "
            f"its vocabulary {shape.vocabulary}"
        )
    return tokenizer


def _from_pretrained(kind: Any, backbone: str, **options: Any) -> Any:
    files = locate(backbone)
    try:
        return kind.from_pretrained(files.place, local_files_only=files.local_only, **options)
    except (OSError, ValueError, SafetensorError) as error:
        raise BackboneError(_reason(kind, backbone, files.place, error)) from error


def _reason(kind: Any, backbone: str, place: str, error: Exception) -> str:
    if not Path(place).is_dir():
        return unreachable(backbone, place)
    line = str(error).splitlines()[0].rstrip(": ")
    return f"backbone {backbone}: cannot read its {_PARTS[kind]}: {line}"
