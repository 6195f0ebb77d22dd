"""BERT, and MiniLM, which is one."""

# N rows (lanes x batch), T tokens, D width

from typing import Any

from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.backbones.shape import Shape


class Bert(Backbone):
    """Absolute positions from 0, two segments, LayerNorm after the embeddings."""

    @staticmethod
    def shape_of(config: Any) -> Shape:
        """The sizes of a `BertConfig`."""
        return Shape(
            family="bert",
            width=config.hidden_size,
            num_blocks=config.num_hidden_layers,
            vocabulary=config.vocab_size,
            max_tokens=config.max_position_embeddings,
        )

    @property
    def blocks(self) -> nn.ModuleList:
        """The layers of the encoder."""
        return self.model.encoder.layer

    @property
    def words(self) -> nn.Embedding:
        """The word embeddings."""
        return self.model.embeddings.word_embeddings

    def embed(self, words_NTD: Tensor, text: Text) -> Tensor:
        """Words, positions and segments added and normalised."""
        return self.model.embeddings(inputs_embeds=words_NTD, token_type_ids=text.types_NT)
