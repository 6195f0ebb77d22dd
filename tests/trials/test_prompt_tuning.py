"""Prompt tuning, and P-Tuning v1 as AoT has it: rows, first values, counts, refusals."""

from typing import Any

import pytest
import torch
from prompts_by_hand import CPU, by_hand, trained
from tiny_backbones import some_text

from orchestrator.fit import parameters
from searchspaces import files
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.methods.lanes import Lanes
from trials.methods.prompt_tuning import PromptTuning
from trials.methods.prompts import FREQUENT, FusedPrompt
from trials.methods.ptuning_v1 import PTuningV1

METHODS: dict[str, type[PromptTuning]] = {"prompt_tuning": PromptTuning, "ptuning_v1": PTuningV1}
VALUES: dict[str, Any] = {"learning_rate": 1e-3, "prompt_length": 5}


@pytest.mark.parametrize("method", METHODS.values())
@torch.no_grad()
def test_the_rows_stand_before_the_text(backbone: Backbone, method: type[PromptTuning]) -> None:
    adapter = trained(method(**VALUES), backbone, (0, 1))
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    expected = by_hand(backbone, text, adapter.prompt_SPD)
    kept = text.mask_NT.bool()
    assert (ours - expected)[kept].abs().max() <= 1e-5
    assert (ours - backbone.run(text, Edits()))[kept].abs().max() > 0.1
    swapped = by_hand(backbone, text, adapter.prompt_SPD.flip(0))
    assert (ours - swapped)[kept].abs().max() > 0.1


@torch.no_grad()
def test_the_fused_prompt_is_the_rows_alone(backbone: Backbone) -> None:
    adapter = trained(PromptTuning(**VALUES), backbone, (0, 1, 2))
    text = some_text(backbone, lengths=(7, 12, 3, 9, 9, 5))
    ours = backbone.run(text, adapter.edits(train=False))
    fused = adapter.fuse(backbone)
    adapter.prompt_SPD.neg_()  # what was fused stays as it was
    assert torch.equal(backbone.run(text, fused.edits(train=False)), ours)
    assert (backbone.run(text, adapter.edits(train=False)) - ours).abs().max() > 0.1
    assert isinstance(fused, FusedPrompt)
    assert not list(fused.parameters())
    assert sum(buffer.numel() for buffer in fused.buffers()) == adapter.prompt_SPD.numel()


def fresh(init: str, width: int = 64, vocabulary: int = 6000) -> tuple[torch.Tensor, torch.Tensor]:
    """First rows [2, 40, D] over made-up word embeddings, and those."""
    words_VD = torch.arange(vocabulary).float()[:, None] + torch.arange(width) / width
    method = PromptTuning(learning_rate=1e-3, prompt_length=40, init=init)
    return method.first_rows(Lanes((0, 1), CPU), words_VD, 40), words_VD


def test_sampled_rows_are_different_frequent_tokens_of_each_lane() -> None:
    rows_SPD, words_VD = fresh("sampled")
    tokens_SP = rows_SPD[:, :, 0].long()
    assert torch.equal(rows_SPD, words_VD[tokens_SP])
    assert all(len(set(lane.tolist())) == 40 for lane in tokens_SP)
    assert tokens_SP.max() < FREQUENT
    assert tokens_SP.max() > FREQUENT // 2
    assert not torch.equal(rows_SPD[0], rows_SPD[1])


def test_uniform_rows_lie_between_minus_half_and_half() -> None:
    rows_SPD, _ = fresh("uniform")
    assert rows_SPD.abs().max() <= 0.5
    assert rows_SPD.std().item() == pytest.approx(1 / 12**0.5, rel=0.03)
    assert not torch.equal(rows_SPD[0], rows_SPD[1])


def test_normal_rows_have_deviation_1() -> None:
    rows_SPD, _ = fresh("normal")
    assert rows_SPD.std().item() == pytest.approx(1, rel=0.03)
    assert rows_SPD.mean().abs().item() < 0.05
    assert not torch.equal(rows_SPD[0], rows_SPD[1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("backbone_name", "length", "count"),
    [
        ("roberta-base", 10, 7_680),
        ("roberta-base", 100, 76_800),
        ("roberta-base", 200, 153_600),
        ("roberta-large", 10, 10_240),
        ("roberta-large", 100, 102_400),
    ],
)
def test_it_counts_what_the_papers_say(
    method: str, backbone_name: str, length: int, count: int
) -> None:
    head = {"roberta-base": 592_130, "roberta-large": 1_051_650}[backbone_name]
    values = VALUES | {"prompt_length": length}
    assert parameters(method, values, backbone_name, 2) == (count, head)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_length", 0),
        ("prompt_length", 2.5),
        ("prompt_length", "5"),
        ("init", "text"),
        ("init", 1),
    ],
)
@pytest.mark.parametrize("method", METHODS.values())
def test_values_outside_their_domain_are_refused(
    method: type[PromptTuning], field: str, value: object
) -> None:
    with pytest.raises(ValueError, match=f"^{method.__name__}: {field} must be .*, got {value!r}$"):
        method(**VALUES | {field: value})


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_that_leaves_the_text_no_room_is_refused(method: str) -> None:
    parameters(method, VALUES | {"prompt_length": 504}, "roberta-base", 2)
    with pytest.raises(ValueError, match="prompt_length must be at most 504 on this roberta"):
        parameters(method, VALUES | {"prompt_length": 505}, "roberta-base", 2)


@pytest.mark.parametrize(
    ("section", "task", "cells"),
    [("ept", "rte", 5), ("id_spam", "rte", 15), ("adept", "rte", 3), ("adept", "mnli", 1)],
)
def test_the_papers_grids_have_the_papers_sizes(section: str, task: str, cells: int) -> None:
    space = files.load("prompt_tuning").space(section, task=task, family="roberta")
    assert space.grid_size == cells
    steps = space.training["epochs"] * (space.training.get("eval_every") or 0)
    assert steps == {"ept": 30_000, "adept": 30_000, "id_spam": 0}[section] * (
        10 if task == "mnli" else 1
    )
