"""Kronecker AoT and the full tables: the formula, the fused tables, the counts of the paper."""

# S lanes, N = S x b rows, L blocks, V vocabulary, D width

import dataclasses
from typing import Any

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.files import shape_of
from trials.methods.aot_full import AotFull, AotFullAdapter
from trials.methods.aot_kron import AotKron, AotKronAdapter
from trials.methods.fused_tables import FusedTables
from trials.methods.lanes import Lanes

CPU = torch.device("cpu")
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "rank": 3}


def kron(backbone: Backbone, *seeds: int, **values: Any) -> AotKronAdapter:
    """As training may leave it: no weight is zero."""
    adapter = AotKron(**VALUES | values).build(
        backbone.shape, Lanes(seeds or (0,), CPU), backbone.words.weight
    )
    return shaken(adapter)


def full(backbone: Backbone, *seeds: int) -> AotFullAdapter:
    method = AotFull(learning_rate=1e-3)
    return shaken(method.build(backbone.shape, Lanes(seeds, CPU), backbone.words.weight))


def shaken(adapter: Any) -> Any:
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=source)
    return adapter


def products(adapter: AotKronAdapter, lane: int) -> Tensor:
    """[L, A B, D] the whole tables (W_L kron W_M) W_R, all tokens multiplied out."""
    own = [weight[lane] for weight in adapter.parameters()]
    return torch.stack([torch.kron(left, right) @ up for left, right, up in zip(*own, strict=True)])


def with_tables(tables_LVD: Tensor, backbone: Backbone, text: Text) -> Tensor:
    """The tables' rows added by bare hooks while Hugging Face's own forward drives."""
    hooks = []
    for block, table_VD in zip(backbone.blocks, tables_LVD, strict=True):

        def add(_: object, args: tuple[Any, ...], table_VD: Tensor = table_VD) -> tuple[Any, ...]:
            return (args[0] + table_VD[text.ids_NT], *args[1:])

        hooks.append(block.register_forward_pre_hook(add))
    found = own_forward(backbone, text)
    for hook in hooks:
        hook.remove()
    return found


@pytest.mark.parametrize("values", [{}, {"left": 16, "right": 25}, {"right": 7}], ids=str)
@torch.no_grad()
def test_the_bias_is_a_row_of_the_kronecker_product(
    backbone: Backbone, values: dict[str, int]
) -> None:
    adapter = kron(backbone, 0, 1, **values)
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        tables_LVD = products(adapter, lane)
        assert tables_LVD.shape[1] >= backbone.shape.vocabulary
        expected = with_tables(tables_LVD, backbone, text)
        other = with_tables(products(adapter, 1 - lane), backbone, text)
        assert (ours - expected)[rows].abs().max() <= 1e-5
        assert (ours - other)[rows].abs().max() > 0.1
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1


@torch.no_grad()
def test_the_bias_is_a_row_of_the_full_table(backbone: Backbone) -> None:
    adapter = full(backbone, 0, 1)
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        tables_LVD = torch.stack([table[lane] for table in adapter.tables])
        expected = with_tables(tables_LVD, backbone, text)
        assert (ours - expected)[rows].abs().max() <= 1e-5
        assert (ours - with_tables(-tables_LVD, backbone, text))[rows].abs().max() > 0.1


@pytest.mark.parametrize("family", ["bert", "deberta"], indirect=True)
@torch.no_grad()
def test_fused_tables_give_the_unfused_outputs(backbone: Backbone) -> None:
    shape, text = backbone.shape, some_text(backbone, lengths=(7, 12, 3, 9, 9, 5))
    factored, whole = kron(backbone, 0, 1, 2), full(backbone, 0, 1, 2)
    fused_ones: list[tuple[Any, FusedTables]] = [
        (factored, factored.fuse(backbone)),
        (factored, factored.fuse(backbone, rows_at_once=37)),
        (whole, whole.fuse(backbone)),
    ]
    for adapter, fused in fused_ones:
        assert fused.tables_SLVD.shape == (3, shape.num_blocks, shape.vocabulary, shape.width)
        assert fused.tables_SLVD.device.type == "cpu"
        assert not list(fused.parameters())
        ours = backbone.run(text, fused.edits(train=False))
        unfused = backbone.run(text, adapter.edits(train=False))
        assert (ours - unfused).abs().max() <= 1e-5
        assert (ours - backbone.run(text, Edits())).abs().max() > 0.1
        rotated = FusedTables(fused.tables_SLVD.roll(1, 0))
        assert (backbone.run(text, rotated.edits(train=False)) - ours).abs().max() > 0.1
    assert torch.equal(fused_ones[0][1].tables_SLVD, fused_ones[1][1].tables_SLVD)


@pytest.mark.parametrize("family", ["bert"], indirect=True)
@torch.no_grad()
def test_kept_lanes_keep_their_own_tables(backbone: Backbone) -> None:
    fused = full(backbone, 0, 1, 2).fuse(backbone)
    before = fused.tables_SLVD.clone()
    fused.keep([0, 2])
    assert torch.equal(fused.tables_SLVD, before[[0, 2]])
    assert not torch.equal(before[1], before[2])


def test_the_product_starts_at_zero_with_factors_that_do_not(backbone: Backbone) -> None:
    adapter = AotKron(**VALUES | {"rank": 25}).attach(backbone, Lanes((0, 1), CPU))
    assert isinstance(adapter, AotKronAdapter)
    assert not adapter.up_SLQD.any()
    for factor in (adapter.left_SLAR, adapter.right_SLBR):
        assert factor.abs().max().item() == pytest.approx(0.2, rel=0.01)  # 1 / sqrt(25)
        assert factor.std().item() == pytest.approx(0.2 / 3**0.5, rel=0.1)
        assert not torch.equal(factor[0], factor[1])
    whole = AotFull(learning_rate=1e-3).attach(backbone, Lanes((0, 1), CPU))
    assert not any(table.any() for table in whole.parameters())


@torch.no_grad()
def test_dropout_falls_on_the_looked_up_rows_in_training_only(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    adapter = kron(backbone, dropout=0.25)
    still = backbone.run(text, adapter.edits(train=False))
    assert torch.equal(still, backbone.run(text, adapter.edits(train=False)))
    h_NTD = torch.zeros(*text.ids_NT.shape, backbone.shape.width)
    tokens_NT = text.mask_NT.bool()
    given = adapter.edits(train=True).hidden[1](h_NTD, text, h_NTD)[tokens_NT]
    whole = adapter.bias(1, text.ids_NT)[tokens_NT]
    assert (given == 0).float().mean().item() == pytest.approx(0.25, abs=0.06)
    kept = given != 0
    assert torch.allclose(given[kept], whole[kept] / 0.75, atol=1e-6)
    without = kron(backbone, dropout=0.0)
    assert torch.equal(backbone.run(text, without.edits(train=True)), still)


def test_the_bias_depends_on_nothing_but_the_token(backbone: Backbone) -> None:
    adapter = kron(backbone)
    bias_NTD = adapter.bias(1, torch.tensor([[9, 20, 9], [31, 9, 20]]))
    assert torch.allclose(bias_NTD[0, 0], bias_NTD[0, 2], atol=1e-6)
    assert torch.allclose(bias_NTD[0, 0], bias_NTD[1, 1], atol=1e-6)
    assert (bias_NTD[0, 0] - bias_NTD[0, 1]).abs().max() > 1e-2


@pytest.mark.parametrize(
    ("backbone_name", "values", "factors"),
    [
        ("roberta-base", {}, (256, 200)),
        ("roberta-large", {}, (256, 200)),
        ("deberta-xl", {}, (225, 225)),
        ("deberta-xl", {"left": 360, "right": 360}, (360, 360)),
        ("minilm", {}, (175, 175)),
        ("minilm", {"left": 100}, (100, 306)),
        ("minilm", {"right": 100}, (306, 100)),
    ],
)
def test_the_factors_have_a_row_for_every_token(
    backbone_name: str, values: dict[str, int], factors: tuple[int, int]
) -> None:
    shape, method = shape_of(backbone_name), AotKron(**VALUES | values)
    assert method.factors(shape) == factors
    assert factors[0] * factors[1] >= shape.vocabulary
    method.check(shape)


def test_a_square_vocabulary_has_its_root_for_factors() -> None:
    for vocabulary, root in [(400, 20), (401, 21), (441, 21), (2, 2)]:
        shape = dataclasses.replace(shape_of("minilm"), vocabulary=vocabulary)
        assert AotKron(**VALUES).factors(shape) == (root, root)


@pytest.mark.parametrize(
    ("method", "values", "backbone_name", "count"),
    [
        ("aot_kron", {"rank": 20}, "roberta-large", 10_049_280),
        ("aot_kron", {"rank": 20}, "deberta-xl", 48 * (2 * 225 * 20 + 400 * 1024)),
        ("aot_full", {}, "roberta-large", 1_235_312_640),
        ("aot_full", {}, "minilm", 6 * 30522 * 384),
    ],
)
def test_as_many_numbers_are_trained_as_the_paper_says(
    method: str, values: dict[str, int], backbone_name: str, count: int
) -> None:
    adapter, _ = parameters(method, {"learning_rate": 1e-3} | values, backbone_name, 2)
    assert adapter == count


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rank", 0),
        ("rank", 2.5),
        ("left", -1),
        ("right", -1),
        ("right", 2.5),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", float("nan")),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^AotKron: {field} must be .*, got {value!r}$"):
        AotKron(**VALUES | {field: value})


def test_factors_that_leave_tokens_without_a_row_are_refused() -> None:
    method = AotKron(**VALUES | {"left": 251, "right": 200})
    message = r"^AotKron: left must be at least 252 for 50265 tokens with right=200, got 251$"
    with pytest.raises(ValueError, match=message):
        method.check(shape_of("roberta-base"))
    dataclasses.replace(method, left=252).check(shape_of("roberta-base"))
