"""DeBERTa v1: positions as relative distances inside attention, queries, keys, values merged."""

# N rows (lanes x batch), T tokens, D width

from typing import Any, ClassVar

from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.bert import PATHS
from trials.backbones.edits import Stream
from trials.backbones.inner import Part
from trials.backbones.shape import EMBEDDINGS, Role


class Deberta(Backbone):
    """Rows before the text move no token's distance to another."""

    model_options: ClassVar[dict[str, Any]] = {}

    def embed(self, words_NTD: Tensor, mask_NT: Tensor, types_NT: Tensor | None) -> Tensor:
        """Words, with positions if this model adds them, normalised; padding is zero."""
        return self.model.embeddings(inputs_embeds=words_NTD, token_type_ids=types_NT, mask=mask_NT)

    def context(self, stream: Stream) -> dict[str, Any]:
        """The mask as an outer product, and the distances between all pairs."""
        encoder = self.model.encoder
        return {
            "attention_mask": encoder.get_attention_mask(stream.mask_NT),
            "relative_pos": encoder.get_rel_pos(stream.h_NTD),
            "rel_embeddings": encoder.get_rel_embedding(),
        }

    def part(self, block: int, role: Role) -> Part:
        """One linear layer gives queries, keys and values, head by head."""
        if block == EMBEDDINGS:
            return Part(self.model.embeddings.LayerNorm)
        attention: Any = self.blocks[block].get_submodule("attention.self")
        if role in ("query", "key", "value"):
            part = ("query", "key", "value").index(role)
            late_bias = {"query": attention.q_bias, "value": attention.v_bias}.get(role)
            heads = attention.num_attention_heads
            return Part(attention.in_proj, part, 3, groups=heads, late_bias=late_bias)
        if role == "position_query":
            return Part(attention.pos_q_proj)
        module: nn.Module = self.blocks[block].get_submodule(PATHS[role])
        return Part(module)
