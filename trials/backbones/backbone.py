"""The walk: a Hugging Face encoder run block by block, its own modules and weights throughout.

With no edits the result equals the model's own forward to the bit.
"""

# N rows (lanes x batch), T tokens, D width

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.masking_utils import create_bidirectional_mask

from trials.backbones.edits import Edits, Text
from trials.backbones.shape import Shape


class Backbone(ABC):
    """A frozen model with its tokenizer; a family says how to embed and where the blocks are."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model: Any = model
        self.tokenizer = tokenizer
        self.shape = self.shape_of(model.config)
        self.freeze()
        self._pretrained: list[Tensor] | None = None

    @staticmethod
    @abstractmethod
    def shape_of(config: Any) -> Shape:
        """The sizes that a configuration of this family stands for."""

    @property
    @abstractmethod
    def blocks(self) -> nn.ModuleList:
        """The transformer blocks, from the lowest."""

    @property
    @abstractmethod
    def words(self) -> nn.Embedding:
        """The word embeddings, E [V, D]."""

    @abstractmethod
    def embed(self, words_NTD: Tensor, text: Text) -> Tensor:
        """Hidden states that enter block 0 [N, T, D], from word embeddings."""

    def run(self, text: Text, edits: Edits) -> Tensor:
        """Final hidden states of every token [N, T, D]."""
        words_NTD = self.words(text.ids_NT)
        h_NTD = self.embed(words_NTD, text)
        mask = create_bidirectional_mask(
            config=self.model.config, inputs_embeds=h_NTD, attention_mask=text.mask_NT
        )
        for index, block in enumerate(self.blocks):
            if edit := edits.hidden.get(index):
                h_NTD = edit(h_NTD, text, words_NTD)
            h_NTD = block(h_NTD, mask)
        return h_NTD

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.words.weight.device

    def freeze(self) -> None:
        """Turn off gradients and dropout."""
        self.model.requires_grad_(False)
        self.model.eval()

    def thaw(self) -> None:
        """Let every weight be trained, from the values it has now."""
        self.model.requires_grad_(True)

    def use_dropout(self, active: bool) -> None:
        """Switch the model's own dropout."""
        self.model.train(active)

    def pretrained(self) -> list[Tensor]:
        """Copies in host memory of every weight, made when first asked for: before any changes."""
        if self._pretrained is None:
            self._pretrained = [p.detach().cpu().clone() for p in self.model.parameters()]
        return self._pretrained

    def load_weights(self, weights: list[Tensor]) -> None:
        """Overwrite every weight, in the order of the model's parameters."""
        with torch.no_grad():
            for parameter, weight in zip(self.model.parameters(), weights, strict=True):
                parameter.copy_(weight)
