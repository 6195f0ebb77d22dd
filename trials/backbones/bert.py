"""BERT, and MiniLM, which is one."""

# N rows (lanes x batch), T tokens, D width

from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.inner import Part
from trials.backbones.shape import EMBEDDINGS, Role

PATHS: dict[Role, str] = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "ff_input": "intermediate.dense",
    "ff_output": "output.dense",
    "ff_norm": "output.LayerNorm",
}
"""Where a block has the module of a role."""


class Bert(Backbone):
    """Absolute positions from 0, two segments, LayerNorm after the embeddings."""

    def embed(self, words_NTD: Tensor, mask_NT: Tensor, types_NT: Tensor | None) -> Tensor:
        """Words, positions and segments added and normalised."""
        return self.model.embeddings(inputs_embeds=words_NTD, token_type_ids=types_NT)

    def part(self, block: int, role: Role) -> Part:
        """A module of its own for every role."""
        if block == EMBEDDINGS:
            return Part(self.model.embeddings.LayerNorm)
        module: nn.Module = self.blocks[block].get_submodule(PATHS[role])
        return Part(module)
