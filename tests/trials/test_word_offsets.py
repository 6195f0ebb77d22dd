"""DePT and ADePT: offsets by place and by token, two learning rates, fused tables, counts."""

import math
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
from trials.backbones.edits import Edits, Text
from trials.backbones.load import load
from trials.methods import find
from trials.methods.adept import ADePT, ADePTAdapter
from trials.methods.dept import DePT, DePTAdapter
from trials.methods.lanes import Lanes
from trials.methods.word_offsets import OffsetAdapter, TrainedOffsets
from trials.run import Bench

# S lanes, N rows, T tokens, P prompt rows, R rank or bottleneck, D width

RATES = {"learning_rate": 0.3, "network_learning_rate": 1e-4}
VALUES: dict[str, dict[str, Any]] = {
    "dept": RATES | {"prompt_length": 4, "rank": 3, "offset_length": 16},
    "adept": RATES | {"prompt_length": 4, "bottleneck": 5},
}
LENGTHS = (7, 12, 3, 9)


@pytest.fixture(params=list(VALUES))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bert(tiny_bert: Path) -> Backbone:
    return load(str(tiny_bert), CPU)


def trained(
    name: str, backbone: Backbone, seeds: tuple[int, ...] = (0, 1), **changes: Any
) -> TrainedOffsets:
    adapter = find(name)(**VALUES[name] | changes).attach(backbone, Lanes(seeds, CPU))
    assert isinstance(adapter, TrainedOffsets)
    return moved_by_noise(adapter)


def offsets_by_hand(adapter: TrainedOffsets, words_TD: Tensor, lane: int) -> Tensor:
    """What is added to one text's words [T, D], by the formulas of the papers."""
    if isinstance(adapter, DePTAdapter):
        a_OR, b_RD = adapter.places_SOR[lane], adapter.up_SRD[lane]
        return torch.stack([a_OR[t] @ b_RD for t in range(len(words_TD))])
    assert isinstance(adapter, ADePTAdapter)
    inner_TR = words_TD @ adapter.down_SDR[lane] + adapter.down_bias_SR[lane]
    return inner_TR.clamp(min=0) @ adapter.up_SRD[lane] + adapter.up_bias_SD[lane]


@torch.no_grad()
def test_prompt_and_offsets_are_the_formula_of_the_paper(method: str, backbone: Backbone) -> None:
    adapter = trained(method, backbone)
    text = some_text(backbone, lengths=LENGTHS)
    ours = unpadded(backbone.run(text, adapter.edits(train=True)), text)
    words_NTD, rows_NPD = own_words(backbone, text), adapter.prompt_SPD[[0, 0, 1, 1]]
    moved_NTD = torch.stack(
        [words_NTD[n] + offsets_by_hand(adapter, words_NTD[n], n // 2) for n in range(4)]
    )
    assert (ours - prompted(backbone, rows_NPD, moved_NTD, text)).abs().max() <= 1e-5
    assert (ours - prompted(backbone, rows_NPD, words_NTD, text)).abs().max() > 0.1
    assert (ours - prompted(backbone, rows_NPD.flip(0), moved_NTD, text)).abs().max() > 0.1


@torch.no_grad()
def test_a_fresh_offset_is_zero_and_a_fresh_prompt_sampled_words(
    method: str, bert: Backbone
) -> None:
    lanes = Lanes((0, 1), CPU)
    adapter = find(method)(**VALUES[method]).attach(bert, lanes)
    assert isinstance(adapter, TrainedOffsets)
    text = some_text(bert, lengths=LENGTHS)
    words_NTD = own_words(bert, text)
    assert torch.equal(adapter.moved(True, words_NTD, text), words_NTD)
    ids_SP = torch.cdist(adapter.prompt_SPD, bert.words.weight).argmin(-1)
    assert torch.equal(bert.words.weight[ids_SP], adapter.prompt_SPD)
    assert not torch.equal(ids_SP[0], ids_SP[1])
    weight, rank = (
        (adapter.places_SOR, 3) if isinstance(adapter, DePTAdapter) else (adapter.down_SDR, 5)
    )
    assert isinstance(weight, Tensor)
    bound = 1 / math.sqrt(rank)
    assert bound * 0.9 < weight.abs().max().item() <= bound
    assert not torch.equal(weight[0], weight[1])


@torch.no_grad()
def test_depts_offset_goes_with_the_place_and_adepts_with_the_token(bert: Backbone) -> None:
    ids_NT = torch.tensor([[9, 20, 9, 40], [31, 9, 20, 9]])
    text = Text(ids_NT, torch.ones_like(ids_NT))
    words_NTD = bert.words(ids_NT)
    by_name = {name: trained(name, bert, (0,)) for name in VALUES}
    offset = {name: a.moved(False, words_NTD, text) - words_NTD for name, a in by_name.items()}
    places, tokens = offset["dept"], offset["adept"]
    assert torch.allclose(places[0], places[1], atol=1e-6)
    assert torch.pdist(places[0]).min() > 0.1
    assert torch.allclose(tokens[0, 0], tokens[0, 2], atol=1e-6)
    assert torch.allclose(tokens[0, 0], tokens[1, 1], atol=1e-6)
    assert (tokens[0] - tokens[1]).norm(dim=1).min() > 0.1


@torch.no_grad()
def test_depts_later_places_have_no_offset(bert: Backbone) -> None:
    adapter = trained("dept", bert, offset_length=5)
    text = some_text(bert, lengths=LENGTHS)
    words_NTD = own_words(bert, text)
    for some in (adapter, adapter.fuse(bert)):
        assert isinstance(some, OffsetAdapter)
        moved_NTD = some.moved(False, words_NTD, text)
        assert torch.equal(moved_NTD[:, 5:], words_NTD[:, 5:])
        assert (moved_NTD[:, :5] - words_NTD[:, :5]).norm(dim=2).min() > 0.05


@torch.no_grad()
def test_depts_released_factor_scales_the_offset(bert: Backbone) -> None:
    plain, scaled = (trained("dept", bert, scale=scale) for scale in ("none", "8/sqrt(r)"))
    text = some_text(bert, lengths=LENGTHS)
    words_NTD = own_words(bert, text)
    offset, larger = (a.moved(False, words_NTD, text) - words_NTD for a in (plain, scaled))
    assert torch.allclose(larger, offset * 8 / math.sqrt(3), atol=1e-5)
    assert offset.abs().max() > 0.1


@torch.no_grad()
def test_fused_tables_give_the_unfused_outputs(method: str, backbone: Backbone) -> None:
    seeds = (0, 1, 2)
    adapter = trained(method, backbone, seeds)
    chunked = isinstance(adapter, ADePTAdapter)
    fused = adapter.fuse(backbone, rows_at_once=37) if chunked else adapter.fuse(backbone)
    rows = backbone.shape.vocabulary if method == "adept" else 16
    assert not list(fused.parameters())
    assert {tuple(buffer.shape) for buffer in fused.buffers()} == {(3, 4, 32), (3, rows, 32)}
    text = some_text(backbone, lengths=(*LENGTHS, 9, 5))
    ours = backbone.run(text, fused.edits(train=False))
    unfused = backbone.run(text, adapter.edits(train=False))
    assert (ours - unfused).abs().max() <= 1e-5
    assert (ours - backbone.run(text, Edits())).abs().max() > 0.1
    fused.keep([2, 0, 1])
    rotated = backbone.run(text, fused.edits(train=False))
    assert (rotated - ours).abs().max() > 0.1
    fused.keep([1])
    kept = backbone.run(text, fused.edits(train=False))[:2]
    assert (kept - unfused[:2]).abs().max() <= 1e-5


def test_the_prompt_has_one_rate_and_the_rest_another(
    method: str, tiny_bert: Path, bench: Bench
) -> None:
    spec = demo_spec(method, tiny_bert, head_learning_rate=None, hyperparameters=VALUES[method])
    stack = stack_of(spec, bench)
    assert isinstance(stack.adapter, TrainedOffsets)
    prompt, network, head = stack._optimizer.param_groups
    assert [id(p) for p in prompt["params"]] == [id(stack.adapter.prompt_SPD)]
    assert len(network["params"]) == {"dept": 2, "adept": 4}[method]
    assert [group["lr"] for group in (prompt, network, head)] == [0.3, 1e-4, 1e-4]
    stack = stack_of(demo_spec(method, tiny_bert, head_learning_rate=5e-3), bench)
    assert stack._optimizer.param_groups[2]["lr"] == 5e-3


def test_adept_trains_without_a_prompt_too(tiny_bert: Path, bench: Bench) -> None:
    values = VALUES["adept"] | {"prompt_length": 0, "network_learning_rate": 1e-2}
    spec = demo_spec("adept", tiny_bert, seeds=(0, 1), hyperparameters=values)
    stack = stack_of(spec, bench)
    text = some_text(stack.backbone, lengths=LENGTHS)
    with torch.no_grad():
        plain = stack.backbone.run(text, Edits())
        assert torch.equal(stack.backbone.run(text, stack.adapter.edits(train=False)), plain)
    stack.train_epoch(bench.features(spec)["train"], 1, lambda: False)
    with torch.no_grad():
        ours = stack.backbone.run(text, stack.adapter.edits(train=False))
        fused = stack.adapter.fuse(stack.backbone)
        assert (ours - plain).abs().max() > 0.01
        assert (stack.backbone.run(text, fused.edits(train=False)) - ours).abs().max() <= 1e-5


@torch.no_grad()
def test_adepts_dropout_is_there_in_training_only(bert: Backbone) -> None:
    text = some_text(bert, lengths=LENGTHS)
    adapter = trained("adept", bert, dropout=0.5)
    still = bert.run(text, adapter.edits(train=False))
    first, second = (bert.run(text, adapter.edits(train=True)) for _ in range(2))
    assert (first - still).abs().max() > 0.1
    assert (first - second).abs().max() > 0.1
    assert torch.equal(bert.run(text, adapter.edits(train=False)), still)


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ({"prompt_length": 20, "bottleneck": 39}, 76_071),
        ({"prompt_length": 40, "bottleneck": 29}, 76_061),
        ({"prompt_length": 60, "bottleneck": 19}, 76_051),
        ({"prompt_length": 80, "bottleneck": 9}, 76_041),
        ({"prompt_length": 120, "bottleneck": 39}, 152_871),
        ({"prompt_length": 0, "bottleneck": 49}, 76_081),
        ({"prompt_length": 20, "rank": 60}, 76_800),
        ({"prompt_length": 40, "rank": 45}, 76_800),
        ({"prompt_length": 60, "rank": 30}, 76_800),
        ({"prompt_length": 80, "rank": 15}, 76_800),
        ({"prompt_length": 60, "rank": 24, "offset_length": 512}, 76_800),
        ({"prompt_length": 120, "rank": 60}, 153_600),
    ],
)
def test_they_count_what_the_papers_say(values: dict[str, int], count: int) -> None:
    name = "adept" if "bottleneck" in values else "dept"
    assert parameters(name, RATES | values, "roberta-base", 2)[0] == count


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt_length", 0),
        ("rank", 0),
        ("rank", 2.5),
        ("offset_length", 0),
        ("scale", "8"),
        ("init", "text"),
        ("network_learning_rate", 0.0),
        ("network_learning_rate", float("nan")),
        ("network_learning_rate", "1e-4"),
    ],
)
def test_depts_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^DePT: {field} must be .*, got {value!r}$"):
        DePT(**VALUES["dept"] | {field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("prompt_length", -1), ("bottleneck", 0), ("dropout", 1.0), ("dropout", -0.1)],
)
def test_adepts_values_outside_their_domain_are_refused(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^ADePT: {field} must be .*, got {value!r}$"):
        ADePT(**VALUES["adept"] | {field: value})
