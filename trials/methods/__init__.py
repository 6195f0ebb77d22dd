"""Methods, one file each, found by name in `METHODS`."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trials.methods.method import Method

METHODS = {
    "adapterdrop": "AdapterDrop",
    "adapters": "Adapters",
    "adept": "ADePT",
    "aot_fc": "AotFC",
    "aot_full": "AotFull",
    "aot_kron": "AotKron",
    "bitfit": "BitFit",
    "dept": "DePT",
    "ept": "Ept",
    "ept_star": "EptStar",
    "fine_tuning": "FineTuning",
    "head_only": "HeadOnly",
    "ia3": "IA3",
    "id_spam": "IdSpam",
    "lora": "LoRA",
    "lpt": "LPT",
    "p_tuning_lstm": "PTuningLSTM",
    "p_tuning_mlp": "PTuningMLP",
    "prompt_tuning": "PromptTuning",
    "ptuning_v1": "PTuningV1",
    "ptuning_v2": "PTuningV2",
    "resprompt": "ResPrompt",
    "smop": "SMoP",
    "superpos": "SuperPos",
}
"""Name of each method, which is also its file's and its search space's, and its class."""


def find(name: str) -> "type[Method]":
    """The class of a method.

    Raises:
        ValueError: if there is no method of that name.
    """
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; known: {', '.join(METHODS)}")
    found: type[Method] = getattr(importlib.import_module(f"trials.methods.{name}"), METHODS[name])
    return found
