"""BitFit: exactly the biases that the backbone has, each lane its own; counts; fusing."""

import copy
from collections.abc import Iterator

import pytest
import torch
from tiny_backbones import noisy_model, own_forward, some_text
from torch import Tensor, nn

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.shape import SHAPES
from trials.methods.bitfit import BitFit, BitFitAdapter
from trials.methods.lanes import Lanes

CPU = torch.device("cpu")
BERT_NAMES = {
    "query": "attention.self.query.bias",
    "key": "attention.self.key.bias",
    "value": "attention.self.value.bias",
    "attention_output": "attention.output.dense.bias",
    "attention_norm": "attention.output.LayerNorm.bias",
    "ff_input": "intermediate.dense.bias",
    "ff_output": "output.dense.bias",
    "ff_norm": "output.LayerNorm.bias",
}
NAMES = {
    "bert": BERT_NAMES,
    "roberta": BERT_NAMES,
    "deberta": {
        **{role: name for role, name in BERT_NAMES.items() if role != "key"},
        "query": "attention.self.q_bias",
        "value": "attention.self.v_bias",
        "position_query": "attention.self.pos_q_proj.bias",
    },
}


def trained(backbone: Backbone, seeds: tuple[int, ...] = (0,)) -> BitFitAdapter:
    """An adapter as training may leave it: no bias is zero."""
    adapter = BitFit(learning_rate=1e-3).attach(backbone, Lanes(seeds, CPU))
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for bias in adapter.parameters():
            bias += 0.3 * torch.randn(bias.shape, generator=source)
    return adapter


def biases(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """By name, `q_bias` and `v_bias` too, without the pooler's."""
    for name, weight in model.named_parameters():
        if name.endswith("bias") and not name.startswith("pooler"):
            yield name, weight


def changed_model(backbone: Backbone, adapter: BitFitAdapter, lane: int) -> nn.Module:
    """A copy of Hugging Face's model with the lane's biases added to its own."""
    model = copy.deepcopy(backbone.model)
    left = dict(biases(model))
    left.pop("embeddings.LayerNorm.bias").add_(adapter.biases_SLX["embedding_norm"][lane, 0])
    for role, name in NAMES[backbone.shape.family].items():
        for i in range(backbone.shape.num_blocks):
            left.pop(f"encoder.layer.{i}.{name}").add_(adapter.biases_SLX[role][lane, i])
    assert not left
    return model


def forward(model: nn.Module, text: Text, rows: slice) -> Tensor:
    types = {} if text.types_NT is None else {"token_type_ids": text.types_NT[rows]}
    output = model(input_ids=text.ids_NT[rows], attention_mask=text.mask_NT[rows], **types)
    return output.last_hidden_state


@torch.no_grad()
def test_every_lane_is_a_model_whose_biases_are_changed(backbone: Backbone) -> None:
    adapter = trained(backbone, (0, 1))
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        expected = forward(changed_model(backbone, adapter, lane), text, rows)
        assert (ours[rows] - expected).abs().max() <= 1e-5
        swapped = forward(changed_model(backbone, adapter, 1 - lane), text, rows)
        assert (ours[rows] - swapped).abs().max() > 0.1
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1


@torch.no_grad()
def test_every_bias_but_a_keys_has_an_effect(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    plain = backbone.run(text, Edits())
    fresh = BitFit(learning_rate=1e-3).attach(backbone, Lanes((0,), CPU))
    for role, bias_SLX in fresh.biases_SLX.items():
        for i in range(bias_SLX.shape[1]):
            bias_SLX[0, i] = torch.linspace(-1, 1, bias_SLX.shape[2])
            effect = (backbone.run(text, fresh.edits(train=False)) - plain).abs().max()
            assert effect < 1e-4 if role == "key" else effect > 1e-3, (role, i)
            bias_SLX[0, i] = 0


def test_the_first_biases_are_zero_and_the_places_are_those_that_the_backbone_has(
    backbone: Backbone,
) -> None:
    adapter = BitFit(learning_rate=1e-3).attach(backbone, Lanes((0, 1), CPU))
    assert not any(bias.any() for bias in adapter.parameters())
    counted = sum(bias.numel() for bias in adapter.parameters()) // 2
    assert counted == sum(bias.numel() for _, bias in biases(backbone.model))


@pytest.mark.parametrize(
    ("backbone_name", "count"),
    [("roberta-base", 102_144), ("roberta-large", 271_360), ("deberta-xl", 541_696)],
)
def test_the_counts_are_those_of_the_papers_backbones(backbone_name: str, count: int) -> None:
    assert parameters("bitfit", {"learning_rate": 1e-3}, backbone_name, 2)[0] == count


def test_a_deberta_without_queries_of_positions_has_no_bias_for_them() -> None:
    model = noisy_model("deberta", pos_att_type=["c2p"])
    shape = SHAPES["deberta"](model.config.to_dict())
    adapter = BitFit(learning_rate=1e-3).build(shape, Lanes((0,), CPU), torch.empty(1, 1))
    assert "position_query" not in adapter.biases_SLX
    counted = sum(bias.numel() for bias in adapter.parameters())
    assert counted == sum(bias.numel() for _, bias in biases(model))


@torch.no_grad()
def test_fused_the_biases_of_one_lane_are_the_backbones(backbone: Backbone) -> None:
    adapter = trained(backbone, (0, 1, 2))
    with pytest.raises(ValueError, match="one lane, got 3"):
        adapter.fuse(backbone)
    expected = dict(changed_model(backbone, adapter, 2).named_parameters())
    adapter.keep([2])
    fused = adapter.fuse(backbone)
    assert not list(fused.parameters())
    fused.activate()
    for name, weight in backbone.model.named_parameters():
        assert torch.equal(weight, expected[name]), name
    fused.release()
    assert not torch.equal(
        dict(backbone.model.named_parameters())["embeddings.LayerNorm.bias"],
        expected["embeddings.LayerNorm.bias"],
    )
