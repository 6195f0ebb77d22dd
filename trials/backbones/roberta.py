"""RoBERTa: BERT's blocks, with positions that start behind the padding index."""

# N rows (lanes x batch), T tokens, D width

from torch import Tensor

from trials.backbones.bert import Bert


class Roberta(Bert):
    """Positions count the tokens from pad + 1; padding keeps position pad; one segment."""

    def embed(self, words_NTD: Tensor, mask_NT: Tensor, types_NT: Tensor | None) -> Tensor:
        """Words and positions added and normalised."""
        mask = mask_NT.long()
        positions_NT = mask.cumsum(1) * mask + self.model.config.pad_token_id
        return self.model.embeddings(inputs_embeds=words_NTD, position_ids=positions_NT)
