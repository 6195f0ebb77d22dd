"""FC AoT: the formula, the fused tables, the counts of the paper, its dropout."""

from pathlib import Path

import pytest
import torch
from tiny_backbones import some_text
from torch import Tensor
from torch.nn import functional as F

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.load import load
from trials.methods.aot_fc import AotFC, AotFCAdapter
from trials.methods.lanes import Lanes

# S lanes, N = S x b rows, T tokens, D width, R rank

CPU = torch.device("cpu")
VALUES = {"learning_rate": 1e-3, "rank": 8}
FUNCTIONS = {"gelu": F.gelu, "relu": F.relu}


def trained(method: AotFC, backbone: Backbone, seeds: tuple[int, ...] = (0,)) -> AotFCAdapter:
    """An adapter as training may leave it: no weight is zero."""
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=source)
    return adapter


def by_hand(adapter: AotFCAdapter, backbone: Backbone, text: Text, activation: str) -> Tensor:
    """P = f(E W1 + b1) W2 + b2 added by bare hooks while Hugging Face's own forward drives."""
    words_VD = backbone.model.get_input_embeddings().weight
    hooks = []
    for i, block in enumerate(backbone.model.encoder.layer):
        w1_DR, b1_R = adapter.down_SLDR[0, i], adapter.down_bias_SLR[0, i]
        w2_RD, b2_D = adapter.up_SLRD[0, i], adapter.up_bias_SLD[0, i]
        table_VD = FUNCTIONS[activation](words_VD @ w1_DR + b1_R) @ w2_RD + b2_D

        def add(_: object, args: tuple[Tensor, ...], table_VD: Tensor = table_VD) -> tuple:
            return (args[0] + table_VD[text.ids_NT], *args[1:])

        hooks.append(block.register_forward_pre_hook(add))
    types = {} if text.types_NT is None else {"token_type_ids": text.types_NT}
    output = backbone.model(input_ids=text.ids_NT, attention_mask=text.mask_NT, **types)
    for hook in hooks:
        hook.remove()
    return output.last_hidden_state


@pytest.mark.parametrize("activation", ["gelu", "relu"])
@torch.no_grad()
def test_the_bias_is_the_formula_of_the_paper(backbone: Backbone, activation: str) -> None:
    adapter = trained(AotFC(**VALUES, activation=activation), backbone)
    text = some_text(backbone, lengths=(7, 12, 3))
    ours = backbone.run(text, adapter.edits(train=False))
    expected = by_hand(adapter, backbone, text, activation)
    plain = backbone.run(text, Edits())
    difference, effect = (ours - expected).abs().max(), (ours - plain).abs().max()
    assert difference <= 1e-5
    assert effect > 0.1
    other = trained(
        AotFC(**VALUES, activation="relu" if activation == "gelu" else "gelu"), backbone
    )
    assert (backbone.run(text, other.edits(train=False)) - ours).abs().max() > 1e-2


@pytest.mark.parametrize("rows_at_once", [8192, 37])
@torch.no_grad()
def test_fused_tables_give_the_unfused_outputs(backbone: Backbone, rows_at_once: int) -> None:
    seeds = (0, 1, 2)
    adapter = trained(AotFC(**VALUES), backbone, seeds)
    fused = adapter.fuse(backbone, rows_at_once)
    shape = backbone.shape
    assert fused.tables_SLVD.shape == (3, shape.num_blocks, shape.vocabulary, shape.width)
    assert fused.tables_SLVD.device.type == "cpu"
    text = some_text(backbone, lengths=(7, 12, 3, 9, 9, 5))
    ours = backbone.run(text, fused.edits(train=False))
    difference = (ours - backbone.run(text, adapter.edits(train=False))).abs().max()
    effect = (ours - backbone.run(text, Edits())).abs().max()
    assert difference <= 1e-5
    assert effect > 1e-2
    rotated = type(fused)(fused.tables_SLVD.roll(1, 0))
    assert (backbone.run(text, rotated.edits(train=False)) - ours).abs().max() > 1e-2


def test_a_fresh_adapter_has_the_papers_initial_values(backbone: Backbone) -> None:
    adapter = AotFC(learning_rate=1e-3, rank=64).attach(backbone, Lanes((0, 1), CPU))
    assert adapter.down_SLDR.std().item() == pytest.approx(0.02, rel=0.05)
    assert adapter.down_SLDR.mean().abs().item() < 1e-3
    assert not torch.equal(adapter.down_SLDR[0], adapter.down_SLDR[1])
    for zero in (adapter.down_bias_SLR, adapter.up_SLRD, adapter.up_bias_SLD):
        assert not zero.any()


@torch.no_grad()
def test_dropout_is_there_in_training_only(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    adapter = trained(AotFC(**VALUES, dropout=0.5), backbone)
    still = backbone.run(text, adapter.edits(train=False))
    assert torch.equal(still, backbone.run(text, adapter.edits(train=False)))
    first, second = (backbone.run(text, adapter.edits(train=True)) for _ in range(2))
    assert (first - still).abs().max() > 0.1
    assert (first - second).abs().max() > 0.1
    without = trained(AotFC(**VALUES, dropout=0.0), backbone)
    assert torch.equal(backbone.run(text, without.edits(train=True)), still)


@pytest.mark.parametrize(
    ("backbone_name", "count"), [("roberta-base", 4_730_880), ("roberta-large", 12_613_632)]
)
def test_rank_256_counts_what_the_paper_says(backbone_name: str, count: int) -> None:
    head = {"roberta-base": 592_130, "roberta-large": 1_051_650}[backbone_name]
    values = VALUES | {"rank": 256}
    assert parameters("aot_fc", values, backbone_name, 2) == (count, head)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", 0),
        ("rank", -3),
        ("rank", 2.5),
        ("rank", "16"),
        ("activation", "tanh"),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", float("nan")),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^AotFC: {field} must be .*, got {value!r}$"):
        AotFC(**VALUES | {field: value})


def test_the_bias_goes_with_the_token_and_not_with_its_place(tiny_folders: dict[str, Path]) -> None:
    backbone = load(str(tiny_folders["bert"]), CPU)
    adapter = trained(AotFC(**VALUES), backbone)
    words_NTD = backbone.words(torch.tensor([[9, 20, 9], [31, 9, 20]]))
    bias_NTD = adapter.bias(1, words_NTD)
    assert torch.allclose(bias_NTD[0, 0], bias_NTD[0, 2], atol=1e-6)
    assert torch.allclose(bias_NTD[0, 0], bias_NTD[1, 1], atol=1e-6)
    assert (bias_NTD[0, 0] - bias_NTD[0, 1]).abs().max() > 1e-2
