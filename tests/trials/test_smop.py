"""SMoP: the choice of a prompt, its weight, the router's start and noise, the count."""

from pathlib import Path
from typing import Any

import pytest
import torch
from prompts_by_hand import CPU, moved_by_noise, own_words, prompted, unpadded
from tiny_backbones import some_text
from torch import Tensor

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.load import load
from trials.methods.lanes import Lanes
from trials.methods.smop import SMoP, SMoPAdapter

# S lanes, N rows, K prompts, P rows of each, D width

VALUES: dict[str, Any] = {"learning_rate": 1e-2, "num_prompts": 3, "prompt_length": 4}
LENGTHS = (7, 12, 3, 9, 5, 8)


def adapter_on(backbone: Backbone, seeds: tuple[int, ...] = (0, 1)) -> SMoPAdapter:
    """A trained one, its router so large that texts differ in their prompts."""
    adapter = moved_by_noise(SMoP(**VALUES).build(backbone.shape, Lanes(seeds, CPU), Tensor()))
    with torch.no_grad():
        adapter.router_SDK *= 3
    return adapter


def choices(adapter: SMoPAdapter, backbone: Backbone, text: Text) -> list[tuple[int, int, float]]:
    """Text by text: lane, chosen prompt and its weight."""
    found = []
    per_lane = len(text) // len(adapter.router_SDK)
    for n, words_TD in enumerate(own_words(backbone, text)):
        lane = n // per_lane
        mean_D = words_TD[: int(text.mask_NT[n].sum())].mean(0)
        weights_K = torch.softmax(mean_D @ adapter.router_SDK[lane], 0)
        found.append((lane, int(weights_K.argmax()), float(weights_K.max())))
    return found


@pytest.mark.parametrize("family", ["bert", "roberta"])
@torch.no_grad()
def test_a_text_gets_the_prompt_of_the_largest_weight_times_that_weight(
    tiny_folders: dict[str, Path], family: str
) -> None:
    backbone = load(str(tiny_folders[family]), CPU)
    adapter = adapter_on(backbone)
    text = some_text(backbone, lengths=LENGTHS)
    chosen = choices(adapter, backbone, text)
    assert len({(lane, prompt) for lane, prompt, _ in chosen}) >= 3
    assert all(0.34 < weight < 0.99 for *_, weight in chosen)
    rows_NPD = torch.stack([w * adapter.prompts_SKPD[lane, k] for lane, k, w in chosen])
    words_NTD = own_words(backbone, text)
    ours = unpadded(backbone.run(text, adapter.edits(train=False)), text)
    assert (ours - prompted(backbone, rows_NPD, words_NTD, text)).abs().max() <= 1e-5
    unscaled = torch.stack([adapter.prompts_SKPD[lane, k] for lane, k, _ in chosen])
    first = torch.stack([w * adapter.prompts_SKPD[lane, 0] for lane, _, w in chosen])
    for wrong in (unscaled, first):
        assert (ours - prompted(backbone, wrong, words_NTD, text)).abs().max() > 0.01
    assert (ours - unpadded(backbone.run(text, Edits()), text)).abs().max() > 0.1


@torch.no_grad()
def test_deberta_shows_nothing_of_a_prompts_scale(tiny_folders: dict[str, Path]) -> None:
    effects = {}
    for family in ("bert", "deberta"):
        backbone = load(str(tiny_folders[family]), CPU)
        text = some_text(backbone, lengths=LENGTHS)
        words_NTD = own_words(backbone, text)
        rows_NPD = torch.randn(len(text), 4, 32, generator=torch.Generator().manual_seed(0))
        full, half = (prompted(backbone, c * rows_NPD, words_NTD, text) for c in (1, 0.5))
        effects[family] = float((full - half).abs().max())
    assert effects["deberta"] <= 1e-5
    assert effects["bert"] > 0.01


@torch.no_grad()
def test_the_router_does_not_see_the_padding(backbone: Backbone) -> None:
    adapter = adapter_on(backbone)
    narrow = some_text(backbone, lengths=LENGTHS)
    wide = some_text(backbone, lengths=LENGTHS, columns=30)
    mean_of = [(own_words(backbone, text), text.mask_NT) for text in (narrow, wide)]
    logits_NK, wide_NK = (adapter.logits(*pair) for pair in mean_of)
    assert (logits_NK - wide_NK).abs().max() <= 1e-5
    everywhere_NK = adapter.logits(own_words(backbone, wide), torch.ones_like(wide.mask_NT))
    assert (everywhere_NK - logits_NK).abs().max() > 0.01


@torch.no_grad()
def test_noise_moves_the_choice_in_training_only(tiny_bert: Path) -> None:
    backbone = load(str(tiny_bert), CPU)
    adapter = adapter_on(backbone)
    text = some_text(backbone, lengths=LENGTHS)
    still = backbone.run(text, adapter.edits(train=False))
    assert torch.equal(still, backbone.run(text, adapter.edits(train=False)))
    first, second = (backbone.run(text, adapter.edits(train=True)) for _ in range(2))
    assert (first - still).abs().max() > 0.1
    assert (first - second).abs().max() > 0.1


def test_noise_scales_a_logit_by_one_plus_a_normal_number_without_its_gradient(
    tiny_bert: Path,
) -> None:
    backbone = load(str(tiny_bert), CPU)
    adapter, twin = (adapter_on(backbone, (0,)) for _ in range(2))
    text = some_text(backbone, lengths=LENGTHS)
    words_NTD = own_words(backbone, text)
    (rows_edit,) = adapter.edits(train=True).rows.values()
    rows_NPD = rows_edit(words_NTD, text, words_NTD)
    rows_NPD.sum().backward()
    logits_NK = twin.logits(words_NTD, text.mask_NT)
    factor_NK = 1 + Lanes((0,), CPU).noise(logits_NK)
    # value of logits * factor, gradient of logits alone
    noisy_NK = logits_NK + (logits_NK * factor_NK - logits_NK).detach()
    weight_N, chosen_N = noisy_NK.softmax(1).max(1)
    expected = twin.prompts_SKPD[0, chosen_N] * weight_N[:, None, None]
    expected.sum().backward()
    assert torch.allclose(rows_NPD, expected, atol=1e-6)
    ours, theirs = adapter.router_SDK.grad, twin.router_SDK.grad
    assert ours is not None
    assert theirs is not None
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert ours.abs().max() > 1e-3


def test_a_lanes_noise_hangs_on_its_own_seed_alone() -> None:
    x_NK = torch.zeros(3 * 500, 4)
    stacked, alone = Lanes((3, 1, 2), CPU), Lanes((2,), CPU)
    ours = stacked.noise(x_NK).view(3, 500, 4)
    assert torch.equal(ours[2], alone.noise(x_NK[:500]))
    assert not torch.equal(ours[0], ours[1])
    assert ours.std().item() == pytest.approx(1, rel=0.05)
    assert ours.mean().abs().item() < 0.05
    stacked.keep([2])
    again = stacked.noise(x_NK[:500])
    assert torch.equal(again, alone.noise(x_NK[:500]))
    assert not torch.equal(again, ours[2])


def test_a_fresh_adapter_has_normal_prompts_and_an_orthonormal_router(tiny_bert: Path) -> None:
    shape = load(str(tiny_bert), CPU).shape
    values = VALUES | {"prompt_length": 40}
    adapter = SMoP(**values).build(shape, Lanes((0, 1), CPU), Tensor())
    assert adapter.prompts_SKPD.std().item() == pytest.approx(1, rel=0.05)
    products_SKK = adapter.router_SDK.transpose(1, 2) @ adapter.router_SDK
    assert torch.allclose(products_SKK, torch.eye(3).expand(2, 3, 3), atol=1e-5)
    assert not torch.equal(adapter.router_SDK[0], adapter.router_SDK[1])
    alone = SMoP(**values).build(shape, Lanes((1,), CPU), Tensor())
    assert torch.equal(alone.router_SDK[0], adapter.router_SDK[1])


def test_four_prompts_of_five_count_what_the_sizes_give() -> None:
    values = {"learning_rate": 1e-3, "num_prompts": 4, "prompt_length": 5}
    assert parameters("smop", values, "roberta-base", 2)[0] == 18_432


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_prompts", 0), ("num_prompts", 2.5), ("prompt_length", 0), ("prompt_length", "4")],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^SMoP: {field} must be .*, got {value!r}$"):
        SMoP(**VALUES | {field: value})
