"""Lanes draw from their own seeds alone; the head is RoBERTa's, one per lane."""

import pytest
import torch
from torch import Tensor, nn
from transformers import RobertaConfig
from transformers.models.roberta.modeling_roberta import RobertaClassificationHead

from trials.head import Head
from trials.methods.lanes import Lanes, generator, linear
from trials.stack import lane_losses

CPU = torch.device("cpu")


def draws(lanes: Lanes) -> list[Tensor]:
    """[S, ...] of everything that a lane can draw."""
    rows = len(lanes)
    return [
        lanes.normal(3, 4, std=0.5),
        lanes.uniform(5, bound=2.0),
        lanes.dropout(torch.ones(rows * 2, 6), 0.5).view(rows, 2, 6),
        torch.stack([torch.randperm(20, generator=order) for order in lanes.order]),
    ]


def test_what_a_lane_draws_depends_on_its_own_seed_alone() -> None:
    together = draws(Lanes((3, 1, 2), CPU))
    for lane, seed in enumerate((3, 1, 2)):
        for ours, alone in zip(together, draws(Lanes((seed,), CPU)), strict=True):
            assert torch.equal(ours[lane], alone[0])
    for ours in together:
        assert not torch.equal(ours[0], ours[1])


def test_kept_lanes_go_on_as_if_the_others_had_never_been_there() -> None:
    lanes, alone = Lanes((3, 1, 2), CPU), Lanes((2,), CPU)
    draws(lanes)
    draws(alone)
    lanes.keep([2])
    assert lanes.seeds == [2]
    for ours, expected in zip(draws(lanes), draws(alone), strict=True):
        assert torch.equal(ours, expected)


def test_the_purposes_of_a_seed_are_independent_of_each_other() -> None:
    first = {torch.rand(1, generator=generator(0, name)).item() for name in ("order", "noise")}
    assert len(first) == 2
    assert torch.rand(1, generator=generator(0, "order")).item() in first


def test_dropout_scales_what_it_keeps_and_leaves_the_mean() -> None:
    x = torch.ones(2 * 1000, 8)
    dropped = Lanes((0, 1), CPU).dropout(x, 0.25)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.02)
    assert Lanes((0, 1), CPU).dropout(x, 0.0) is x


def test_padding_by_other_lanes_does_not_move_a_lanes_dropout() -> None:
    lengths_N = torch.tensor([3, 5, 9, 2])  # two lanes of two rows
    stacked, alone = Lanes((0, 1), CPU), Lanes((0,), CPU)
    for _ in range(3):
        ours = stacked.dropout(torch.ones(4, 9, 6), 0.5, lengths_N)
        expected = alone.dropout(torch.ones(2, 5, 6), 0.5, lengths_N[:2])
        assert torch.equal(ours[:2, :5], expected)
        assert (ours == 0).any(2).sum() > 10


def test_each_lane_has_its_own_linear_map() -> None:
    source = torch.Generator().manual_seed(0)
    x_NTI = torch.randn(6, 4, 5, generator=source)
    weight_SIO, bias_SO = (torch.randn(*size, generator=source) for size in ((3, 5, 2), (3, 2)))
    found = linear(x_NTI, weight_SIO, bias_SO)
    for lane in range(3):
        rows = slice(2 * lane, 2 * lane + 2)
        expected = x_NTI[rows] @ weight_SIO[lane] + bias_SO[lane]
        assert torch.allclose(found[rows], expected, atol=1e-6)


def test_a_lane_of_the_head_is_robertas_own_head() -> None:
    head = Head(32, 3, Lanes((0, 1), CPU))
    with torch.no_grad():
        head.dense_bias_SD.normal_()
        head.out_bias_SC.normal_()
    first_ND = torch.randn(2 * 4, 32, generator=torch.Generator().manual_seed(0))
    logits_NC = head(first_ND, train=False)
    for lane in range(2):
        own = RobertaClassificationHead(RobertaConfig(hidden_size=32, num_labels=3)).eval()
        own.dense.weight = nn.Parameter(head.dense_SDD[lane].T)
        own.dense.bias = nn.Parameter(head.dense_bias_SD[lane])
        own.out_proj.weight = nn.Parameter(head.out_SDC[lane].T)
        own.out_proj.bias = nn.Parameter(head.out_bias_SC[lane])
        rows = slice(4 * lane, 4 * lane + 4)
        assert torch.allclose(logits_NC[rows], own(first_ND[rows, None]), atol=1e-6)
    assert (logits_NC[:4] - logits_NC[4:]).abs().max() > 0.1
    assert (head(first_ND, train=True) - logits_NC).abs().max() > 1e-2


def test_a_lanes_loss_is_its_own_mean() -> None:
    source = torch.Generator().manual_seed(0)
    logits_SbC = torch.randn(2, 5, 3, generator=source)
    labels_Sb = torch.randint(3, (2, 5), generator=source)
    values_Sb = torch.randn(2, 5, generator=source)
    for lane in range(2):
        expected = nn.functional.cross_entropy(logits_SbC[lane], labels_Sb[lane])
        assert torch.allclose(lane_losses(logits_SbC, labels_Sb)[lane], expected)
        expected = nn.functional.mse_loss(logits_SbC[lane, :, 0], values_Sb[lane])
        assert torch.allclose(lane_losses(logits_SbC[..., :1], values_Sb)[lane], expected)
