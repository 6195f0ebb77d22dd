"""The sizes of a backbone, read off its configuration; imports nothing that is slow.

Methods build their adapters, and are counted and checked, from these alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

Role = Literal[
    "query",
    "key",
    "value",
    "position_query",
    "attention_output",
    "attention_norm",
    "ff_input",
    "ff_output",
    "ff_norm",
    "embedding_norm",
]
"""A module by what it does in its block; `embedding_norm` is the one before block 0."""

EMBEDDINGS = -1
"""Stands for the embeddings where a number stands for a block."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The sizes that a method needs to know of a backbone."""

    family: str
    width: int
    num_blocks: int
    num_heads: int
    ff_width: int
    vocabulary: int
    max_tokens: int
    """How many tokens a text may have, special ones and prompts at block 0 included."""
    biases: Mapping[Role, int]
    """The biases of each block, with their widths; see also `embedding_bias`."""
    takes_prefixes: bool = True
    """Whether its attention can be given extra keys and values."""
    takes_bf16: bool = True
    """Whether its modules, Hugging Face's, run under bfloat16 autocast."""
    only_words: bool = False
    """Whether methods can be counted at the word embeddings alone, not inside blocks."""
    has_head: bool = True
    """Whether a classification head is trained on it; none where it answers in text."""

    def linear(self, role: Role) -> tuple[int, int]:
        """Inputs and outputs of the linear layer of that role.

        Raises:
            KeyError: if the role is not a linear layer's.
        """
        width = self.width
        return {
            "query": (width, width),
            "key": (width, width),
            "value": (width, width),
            "attention_output": (width, width),
            "ff_input": (width, self.ff_width),
            "ff_output": (self.ff_width, width),
        }[role]


def _encoder_biases(width: int, ff_width: int) -> dict[Role, int]:
    """Those that BERT's blocks and DeBERTa's have in common."""
    return {
        "query": width,
        "value": width,
        "attention_output": width,
        "attention_norm": width,
        "ff_input": ff_width,
        "ff_output": width,
        "ff_norm": width,
    }


def bert(config: Mapping[str, Any]) -> Shape:
    """The sizes of a BERT."""
    width, ff_width = config["hidden_size"], config["intermediate_size"]
    return Shape(
        family="bert",
        width=width,
        num_blocks=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        ff_width=ff_width,
        vocabulary=config["vocab_size"],
        max_tokens=config["max_position_embeddings"],
        biases={**_encoder_biases(width, ff_width), "key": width},
    )


def roberta(config: Mapping[str, Any]) -> Shape:
    """The sizes of a RoBERTa; positions 0 to pad are never a token's."""
    unused = config.get("pad_token_id", 1) + 1
    like_bert = vars(bert(config))
    like_bert |= {"family": "roberta", "max_tokens": like_bert["max_tokens"] - unused}
    return Shape(**like_bert)


def deberta(config: Mapping[str, Any]) -> Shape:
    """The sizes of a DeBERTa v1: no bias on keys, one on the queries of positions."""
    width, ff_width = config["hidden_size"], config["intermediate_size"]
    position: dict[Role, int] = {}
    if "p2c" in config.get("pos_att_type", ()):
        position["position_query"] = width
    like_bert = vars(bert(config))
    like_bert |= {
        "family": "deberta",
        "biases": {**_encoder_biases(width, ff_width), **position},
        "takes_prefixes": False,
        "takes_bf16": False,  # its attention masks bf16 scores with the least fp32 number
    }
    return Shape(**like_bert)


def t5(config: Mapping[str, Any]) -> Shape:
    """The sizes of a T5, as far as its word embeddings go; blocks of both stacks."""
    layers = config["num_layers"]
    return Shape(
        family="t5",
        width=config["d_model"],
        num_blocks=layers + config.get("num_decoder_layers", layers),
        num_heads=config["num_heads"],
        ff_width=config["d_ff"],
        vocabulary=config["vocab_size"],
        max_tokens=config.get("n_positions", 512),
        biases={},
        only_words=True,
        has_head=False,
    )


def gpt2(config: Mapping[str, Any], family: str = "gpt2") -> Shape:
    """The sizes of a GPT-2 or a CodeGen, as far as its word embeddings go."""
    width = config["n_embd"]
    return Shape(
        family=family,
        width=width,
        num_blocks=config["n_layer"],
        num_heads=config["n_head"],
        ff_width=config.get("n_inner") or 4 * width,
        vocabulary=config["vocab_size"],
        max_tokens=config["n_positions"],
        biases={},
        only_words=True,
        has_head=False,
    )


def llama(config: Mapping[str, Any]) -> Shape:
    """The sizes of a Llama, as far as its word embeddings go."""
    like_bert = vars(bert(config))
    like_bert |= {"family": "llama", "biases": {}, "only_words": True, "has_head": False}
    return Shape(**like_bert)


SHAPES: dict[str, Callable[[Mapping[str, Any]], Shape]] = {
    "bert": bert,
    "roberta": roberta,
    "deberta": deberta,
    "t5": t5,
    "gpt2": gpt2,
    "codegen": partial(gpt2, family="codegen"),
    "llama": llama,
}
"""By the configuration's `model_type`: those that are trained, and more that can be counted on."""
