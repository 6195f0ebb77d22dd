"""LoRA: the formula on every role, separate factors in merged layers, fusing, counts."""

import copy
import math

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor, nn

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.methods.lanes import Lanes
from trials.methods.lora import TARGETS, LoRA, LoRAAdapter

# S lanes, N = S x b rows, T tokens, D width, I inputs, O outputs, W width of a head

CPU = torch.device("cpu")
VALUES = {"learning_rate": 1e-3, "rank": 4, "alpha": 6.0}
PATHS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "ff_input": "intermediate.dense",
    "ff_output": "output.dense",
}


def trained(method: LoRA, backbone: Backbone, seeds: tuple[int, ...] = (0,)) -> LoRAAdapter:
    """An adapter as training may leave it: no weight is zero."""
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=source)
    return adapter


def changed_model(backbone: Backbone, adapter: LoRAAdapter, lane: int, targets: str) -> nn.Module:
    """A copy of Hugging Face's model whose weights are W + (alpha / r) B A, row by row."""
    model = copy.deepcopy(backbone.model)
    scale = VALUES["alpha"] / VALUES["rank"]
    for i, block in enumerate(model.encoder.layer):
        for role in TARGETS[targets]:
            down_IR = adapter.down_SLIR[role][lane, i]
            up_RO = adapter.up_SLRO[role][lane, i]
            change_OI = scale * torch.einsum("ir,ro->oi", down_IR, up_RO)
            if backbone.shape.family == "deberta" and role in ("query", "key", "value"):
                merged = block.get_submodule("attention.self.in_proj").weight
                width = backbone.shape.width // backbone.shape.num_heads
                place = ("query", "key", "value").index(role)
                for head in range(backbone.shape.num_heads):
                    start = (3 * head + place) * width
                    rows_WI = change_OI[head * width : (head + 1) * width]
                    merged[start : start + width] += rows_WI
            else:
                block.get_submodule(PATHS[role]).weight += change_OI
    return model


def rows_of(text: Text, lane: int, lanes: int) -> Text:
    own = slice(lane * len(text) // lanes, (lane + 1) * len(text) // lanes)
    types = None if text.types_NT is None else text.types_NT[own]
    return Text(text.ids_NT[own], text.mask_NT[own], types, text.lengths_N[own])


def forward(model: nn.Module, text: Text) -> Tensor:
    types = {} if text.types_NT is None else {"token_type_ids": text.types_NT}
    output = model(input_ids=text.ids_NT, attention_mask=text.mask_NT, **types)
    return output.last_hidden_state


@pytest.mark.parametrize("targets", TARGETS)
@torch.no_grad()
def test_every_lane_is_a_model_whose_weights_are_changed(backbone: Backbone, targets: str) -> None:
    adapter = trained(LoRA(**VALUES, targets=targets), backbone, (0, 1))
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    expected = torch.cat(
        [
            forward(changed_model(backbone, adapter, lane, targets), rows_of(text, lane, 2))
            for lane in (0, 1)
        ]
    )
    assert (ours - expected).abs().max() <= 1e-5
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1
    swapped = forward(changed_model(backbone, adapter, 1, targets), rows_of(text, 0, 2))
    assert (ours[:2] - swapped).abs().max() > 0.1


@torch.no_grad()
def test_alpha_over_rank_scales_the_change(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    adapter = trained(LoRA(**VALUES), backbone)
    ours = backbone.run(text, adapter.edits(train=False))
    doubled = trained(LoRA(**VALUES | {"alpha": 12.0}), backbone)
    with torch.no_grad():
        for up in doubled.up_SLRO.values():
            up /= 2
    assert torch.allclose(ours, backbone.run(text, doubled.edits(train=False)), atol=1e-5)
    other = trained(LoRA(**VALUES | {"alpha": 12.0}), backbone)
    assert (backbone.run(text, other.edits(train=False)) - ours).abs().max() > 1e-2


def test_down_starts_as_torchs_linear_layer_and_up_at_zero(backbone: Backbone) -> None:
    method = LoRA(learning_rate=1e-3, rank=32, targets="all_linear")
    adapter = method.attach(backbone, Lanes((0, 1), CPU))
    for role, down_SLIR in adapter.down_SLIR.items():
        bound = 1 / math.sqrt(backbone.shape.linear(role)[0])
        assert down_SLIR.abs().max().item() <= bound
        assert down_SLIR.abs().max().item() > 0.99 * bound
        assert down_SLIR.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert not torch.equal(down_SLIR[0], down_SLIR[1])
        assert not torch.equal(down_SLIR[0, 0], down_SLIR[0, 1])
        assert not adapter.up_SLRO[role].any()


@torch.no_grad()
def test_fusing_one_lane_of_three_gives_its_outputs(backbone: Backbone) -> None:
    adapter = trained(LoRA(**VALUES, targets="all_linear"), backbone, (0, 1, 2))
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, adapter.edits(train=False))
    with pytest.raises(ValueError, match="one lane, got 3"):
        adapter.fuse(backbone)
    adapter.keep([1])
    fused = adapter.fuse(backbone)
    assert not list(fused.parameters())
    fused.activate()
    difference = (backbone.run(rows_of(text, 1, 3), Edits()) - ours[1:2]).abs().max()
    fused.release()
    effect = (backbone.run(rows_of(text, 1, 3), Edits()) - ours[1:2]).abs().max()
    assert difference <= 1e-5
    assert effect > 0.1


@torch.no_grad()
def test_dropout_is_there_in_training_only(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    adapter = trained(LoRA(**VALUES, dropout=0.5), backbone)
    still = backbone.run(text, adapter.edits(train=False))
    assert torch.equal(still, backbone.run(text, adapter.edits(train=False)))
    first, second = (backbone.run(text, adapter.edits(train=True)) for _ in range(2))
    assert (first - still).abs().max() > 1e-2
    assert (first - second).abs().max() > 1e-2
    without = trained(LoRA(**VALUES), backbone)
    assert torch.equal(backbone.run(text, without.edits(train=True)), still)


@torch.no_grad()
def test_how_far_another_lane_pads_it_does_not_move_the_dropout_of_a_lane(
    backbone: Backbone,
) -> None:
    def run(text: Text, seeds: tuple[int, ...]) -> Tensor:
        adapter = trained(LoRA(**VALUES, dropout=0.5), backbone, (0, 1))
        adapter.keep(seeds)
        adapter.lanes.keep(seeds)
        return backbone.run(text, adapter.edits(train=True))

    text = some_text(backbone, lengths=(7, 5, 12, 9))
    alone = run(some_text_cut(rows_of(text, 0, 2), 7), (0,))
    stacked = run(text, (0, 1))[:2, :7]
    mask_NT1 = text.mask_NT[:2, :7, None]
    assert ((stacked - alone) * mask_NT1).abs().max() <= 1e-5


def some_text_cut(text: Text, columns: int) -> Text:
    types = None if text.types_NT is None else text.types_NT[:, :columns]
    return Text(text.ids_NT[:, :columns], text.mask_NT[:, :columns], types, text.lengths_N)


def count(targets: str, rank: int, backbone: str) -> int:
    values = {"learning_rate": 1e-3, "rank": rank, "targets": targets}
    return parameters("lora", values, backbone, 2)[0]


def test_the_counts_are_those_of_the_papers() -> None:
    assert count("attention", 16, "roberta-large") == 3_145_728  # AoT: 8 L D r
    head = 2 * 768 + 768 + 50265  # lm_head.dense and the tied decoder, which are not here
    assert count("all_linear", 16, "roberta-base") + 16 * head == 3_495_312  # ID-SPAM, Table 12
    head = 2 * 1024 + 1024 + 50265
    assert count("all_linear", 16, "roberta-large") + 16 * head == 7_931_280
    assert count("query_value", 32, "roberta-base") == 12 * 2 * 32 * 2 * 768
    assert count("query_value", 8, "deberta-xl") == 48 * 2 * 8 * 2 * 1024
    assert count("query_key_value", 8, "minilm") == 6 * 3 * 8 * 2 * 384


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", 0),
        ("rank", 2.5),
        ("alpha", 0),
        ("alpha", -1.0),
        ("alpha", float("inf")),
        ("alpha", "16"),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", float("nan")),
        ("targets", "qv"),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^LoRA: {field} must be .*, got {value!r}$"):
        LoRA(**VALUES | {field: value})
