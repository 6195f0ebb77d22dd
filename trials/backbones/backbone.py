"""The walk: a Hugging Face encoder run block by block, its own modules and weights throughout.

With no edits the result equals the model's own forward to the bit.
"""

# N rows (lanes x batch), T tokens, P prompt rows, D width

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.masking_utils import create_bidirectional_mask

from trials.backbones.edits import Edits, Stream, Text
from trials.backbones.inner import Part, Prefix, hooked
from trials.backbones.shape import SHAPES, Role


class Backbone(ABC):
    """A frozen model with its tokenizer; a family says how to embed and where its modules are."""

    model_options: ClassVar[dict[str, Any]] = {"add_pooling_layer": False}
    """What its model is made with: heads of our own read the tokens, not a pooler."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model: Any = model
        self.tokenizer = tokenizer
        self.shape = SHAPES[model.config.model_type](model.config.to_dict())
        self.freeze()
        self._pretrained: list[Tensor] | None = None

    @property
    def blocks(self) -> nn.ModuleList:
        """The transformer blocks, from the lowest."""
        return self.model.encoder.layer

    @property
    def words(self) -> nn.Embedding:
        """The word embeddings, E [V, D]."""
        return self.model.embeddings.word_embeddings

    @abstractmethod
    def embed(self, words_NTD: Tensor, mask_NT: Tensor, types_NT: Tensor | None) -> Tensor:
        """Hidden states that enter block 0 [N, T, D], from word embeddings."""

    @abstractmethod
    def part(self, block: int, role: Role) -> Part:
        """The module of a role in a block, or in the embeddings."""

    def run(
        self,
        text: Text,
        edits: Edits,
        *,
        start: int = 0,
        states_NTD: Tensor | None = None,
        stop: int | None = None,
    ) -> Tensor:
        """Final hidden states of the text's tokens [N, T, D].

        Args:
            text: the tokens.
            edits: what is changed on the way.
            start: the first block to run.
            states_NTD: what enters it, if it is not block 0.
            stop: the first block not to run, so that what enters it is given; None: run them all.
        """
        words_NTD = self.words(text.ids_NT)
        inputs = {self.part(*place): edit for place, edit in edits.inputs.items()}
        outputs = {self.part(*place): edit for place, edit in edits.outputs.items()}
        with hooked(inputs, outputs, text):
            if states_NTD is None:
                stream = self._enter(words_NTD, text, edits)
            else:
                stream = Stream(states_NTD, text.mask_NT)
            context: dict[str, Any] | None = None
            for index, block in enumerate(self.blocks[start:stop], start):
                if index and (rows := edits.rows.get(index)):
                    stream = stream.with_rows(rows(stream.text_NTD, text, words_NTD))
                    context = None
                if edit := edits.hidden.get(index):
                    stream = stream.with_text(edit(stream.text_NTD, text, words_NTD))
                if prefix := edits.prefix.get(index):
                    own = self._with_prefix(stream, Prefix(*prefix(text)))
                    stream = stream.with_states(_states(block(stream.h_NTD, **own)))
                    continue
                context = self.context(stream) if context is None else context
                stream = stream.with_states(_states(block(stream.h_NTD, **context)))
        return stream.text_NTD

    def _enter(self, words_NTD: Tensor, text: Text, edits: Edits) -> Stream:
        """What enters block 0."""
        edited_NTD = edits.words(words_NTD, text) if edits.words else words_NTD
        stream, types_NT = Stream(edited_NTD, text.mask_NT), text.types_NT
        if rows := edits.rows.get(0):
            stream = stream.with_rows(rows(edited_NTD, text, words_NTD))
            if types_NT is not None:
                types_NT = F.pad(types_NT, (stream.num_rows, 0))
        return stream.with_states(self.embed(stream.h_NTD, stream.mask_NT, types_NT))

    def context(self, stream: Stream) -> dict[str, Any]:
        """What a block is given besides hidden states."""
        mask = create_bidirectional_mask(
            config=self.model.config, inputs_embeds=stream.h_NTD, attention_mask=stream.mask_NT
        )
        return {"attention_mask": mask}

    def _with_prefix(self, stream: Stream, prefix: Prefix) -> dict[str, Any]:
        """What a block is given for a prefix to be attended to from everywhere."""
        mask = create_bidirectional_mask(
            config=self.model.config,
            inputs_embeds=stream.h_NTD,
            attention_mask=stream.mask_NT,
            allow_is_bidirectional_skip=False,  # a mask left out would cut the keys to the text's
        )
        assert isinstance(mask, Tensor)  # flex attention's own masks are for models that ask for it
        visible = True if mask.dtype == torch.bool else 0.0
        length = prefix.keys_NHPW.shape[2]
        return {
            "attention_mask": F.pad(mask, (length, 0), value=visible),
            "past_key_values": prefix,
        }

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


def _states(output: Tensor | tuple[Tensor, ...]) -> Tensor:
    """The hidden states among what a block returns."""
    return output if isinstance(output, Tensor) else output[0]
