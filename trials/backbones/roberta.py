"""RoBERTa: BERT's blocks, with positions that start behind the padding index."""

# N rows (lanes x batch), T tokens, D width

from typing import Any

from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.backbones.shape import Shape


class Roberta(Backbone):
    """Positions count the tokens from pad + 1; padding keeps position pad; one segment."""

    @staticmethod
    def shape_of(config: Any) -> Shape:
        """The sizes of a `RobertaConfig`; positions 0 to pad are never a token's."""
        return Shape(
            family="roberta",
            width=config.hidden_size,
            num_blocks=config.num_hidden_layers,
            vocabulary=config.vocab_size,
            max_tokens=config.max_position_embeddings - config.pad_token_id - 1,
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
        """Words and positions added and normalised."""
        mask = text.mask_NT.long()
        positions_NT = mask.cumsum(1) * mask + self.model.config.pad_token_id
        return self.model.embeddings(inputs_embeds=words_NTD, position_ids=positions_NT)
