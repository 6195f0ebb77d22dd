"""SuperPos: the sum of embeddings, frozen ones among them, its start, the count of the paper."""

from pathlib import Path
from typing import Any

import pytest
import torch
from prompts_by_hand import CPU, moved_by_noise, own_words, prompted, unpadded
from tiny_backbones import some_text
from torch import Tensor
from trial_specs import demo_spec, stack_of

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.backbones.load import load
from trials.methods.lanes import Lanes
from trials.methods.superpos import SuperPos, SuperPosAdapter
from trials.run import Bench

# S lanes, P prompt rows, M sampled tokens, V vocabulary, D width

VALUES: dict[str, Any] = {"learning_rate": 1e-2, "prompt_length": 4, "num_sampled_tokens": 6}


def rows_by_hand(adapter: SuperPosAdapter, lane: int) -> Tensor:
    """Token by token: p_i = sum over j of w_ij (E_j + D_ij) [P, D]."""
    weights_PM = adapter.weights_SPM[lane]
    if adapter.softmax:
        weights_PM = weights_PM.exp() / weights_PM.exp().sum(1, keepdim=True)
    rows = []
    for i, change_MD in enumerate(adapter.change_SPMD[lane]):
        tokens = zip(weights_PM[i], adapter.frozen_SMD[lane], change_MD, strict=True)
        rows.append(torch.stack([w * (e_D + d_D) for w, e_D, d_D in tokens]).sum(0))
    return torch.stack(rows)


@pytest.mark.parametrize("softmax", [False, True])
@torch.no_grad()
def test_a_prompt_is_the_formula_of_the_paper(backbone: Backbone, softmax: bool) -> None:
    method = SuperPos(**VALUES, softmax=softmax)
    adapter = moved_by_noise(method.attach(backbone, Lanes((0, 1), CPU)))
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = unpadded(backbone.run(text, adapter.edits(train=True)), text)
    rows_NPD = torch.stack([rows_by_hand(adapter, lane) for lane in (0, 0, 1, 1)])
    expected = prompted(backbone, rows_NPD, own_words(backbone, text), text)
    assert (ours - expected).abs().max() <= 1e-5
    adapter.softmax = not softmax
    for other in (adapter.edits(train=True), Edits()):
        assert (ours - unpadded(backbone.run(text, other), text)).abs().max() > 0.01


@pytest.mark.parametrize("weight_init", ["normal", "uniform"])
@torch.no_grad()
def test_a_fresh_prompt_is_a_weighted_sum_of_different_real_embeddings(
    tiny_bert: Path, weight_init: str
) -> None:
    backbone = load(str(tiny_bert), CPU)
    words_VD = backbone.words.weight
    values = VALUES | {"num_sampled_tokens": 256, "weight_init": weight_init}
    adapter = SuperPos(**values).attach(backbone, Lanes((0, 1), CPU))
    ids_SM = torch.cdist(adapter.frozen_SMD, words_VD).argmin(-1)
    assert torch.equal(words_VD[ids_SM], adapter.frozen_SMD)
    assert all(len(ids.unique()) == 256 for ids in ids_SM)
    assert set(ids_SM[0].tolist()) != set(ids_SM[1].tolist())
    sums_SPD = torch.einsum("spm,smd->spd", adapter.weights_SPM, words_VD[ids_SM])
    assert (adapter.rows() - sums_SPD).abs().max() <= 1e-6
    assert adapter.rows().abs().max() > 0.01
    if weight_init == "uniform":
        assert adapter.weights_SPM.unique().tolist() == [1 / 256]
    else:
        assert adapter.weights_SPM.std().item() == pytest.approx(1 / 16, rel=0.05)


def test_training_and_leaving_lanes_leave_the_frozen_embeddings_of_a_lane_its_own(
    tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec("superpos", tiny_bert, seeds=(0, 1, 2), limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    adapter = stack.adapter
    assert isinstance(adapter, SuperPosAdapter)
    frozen_SMD, change_SPMD = adapter.frozen_SMD.clone(), adapter.change_SPMD.detach().clone()
    features = bench.features(spec)["train"]
    stack.train_epoch(features, 1, lambda: False)
    assert torch.equal(adapter.frozen_SMD, frozen_SMD)
    assert (adapter.change_SPMD - change_SPMD).abs().amax((1, 2, 3)).min() > 1e-4
    with torch.no_grad():
        rows_SPD = adapter.rows()
        stack.keep([2, 0])
        assert torch.equal(adapter.frozen_SMD, frozen_SMD[[2, 0]])
        assert torch.equal(adapter.rows(), rows_SPD[[2, 0]])
        assert not torch.equal(rows_SPD[0], rows_SPD[2])
    stack.train_epoch(features, 2, lambda: False)
    assert torch.equal(adapter.frozen_SMD, frozen_SMD[[2, 0]])


@torch.no_grad()
def test_fused_only_the_rows_are_left(tiny_bert: Path) -> None:
    backbone = load(str(tiny_bert), CPU)
    adapter = moved_by_noise(SuperPos(**VALUES).attach(backbone, Lanes((0, 1), CPU)))
    fused = adapter.fuse(backbone)
    assert sum(tensor.numel() for tensor in fused.state_dict().values()) == 2 * 4 * 32
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, fused.edits(train=False))
    assert torch.equal(ours, backbone.run(text, adapter.edits(train=False)))
    assert (ours - backbone.run(text, Edits())).abs().max() > 0.01


@pytest.mark.parametrize(
    ("num_sampled_tokens", "count"), [(128, 984_320), (1, 10 * 769), (64, 10 * 64 * 769)]
)
def test_it_counts_what_the_papers_sizes_give(num_sampled_tokens: int, count: int) -> None:
    values = {"learning_rate": 0.01, "num_sampled_tokens": num_sampled_tokens}
    assert parameters("superpos", values, "roberta-base", 2)[0] == count


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_length", 0),
        ("prompt_length", 2.5),
        ("num_sampled_tokens", 0),
        ("num_sampled_tokens", "16"),
        ("weight_init", "sampled"),
        ("softmax", 1),
    ],
)
def test_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^SuperPos: {field} must be .*, got {value!r}$"):
        SuperPos(**VALUES | {field: value})


def test_more_tokens_than_the_vocabulary_has_are_refused(tiny_bert: Path) -> None:
    shape = load(str(tiny_bert), CPU).shape
    SuperPos(**VALUES | {"num_sampled_tokens": shape.vocabulary}).check(shape)
    with pytest.raises(ValueError, match=r"num_sampled_tokens must be at most 400 .*, got 401"):
        SuperPos(**VALUES | {"num_sampled_tokens": 401}).check(shape)
