"""What every method promises, on every family: found through `METHODS`, never listed by hand."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_backbones import some_text
from torch import Tensor
from trial_specs import assert_pristine, demo_spec, numbers, points_of, runs_of, stack_of

from orchestrator.fit import parameters
from searchspaces import files
from trials import methods
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.files import shape_of
from trials.backbones.shape import Shape
from trials.methods import METHODS
from trials.methods.lanes import Lanes
from trials.methods.method import Adapter, Method
from trials.run import Bench, build_method
from trials.stack import Stack, lane_losses
from trials.tasks.batches import epoch_batches

SEEDS = (0, 1, 2)


@pytest.fixture(params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _the_method_takes_the_family(request: pytest.FixtureRequest) -> None:
    """A refusal that `check` words by the backbone's sizes is all that is promised there."""
    if {"method", "family"} <= set(request.fixturenames):
        name = request.getfixturevalue("method")
        folder = request.getfixturevalue("folder")
        built = build_method(demo_spec(name, folder))
        if refusal := refusal_of(built, shape_of(str(folder))):
            assert re.fullmatch(f"{type(built).__name__}: .*", refusal)  # one line
            pytest.skip(refusal)


def refusal_of(built: Method, shape: Shape) -> str:
    try:
        built.check(shape)
    except ValueError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("backbone", ["minilm", "roberta-base", "roberta-large"])
def test_every_method_takes_bert_and_roberta(method: str, backbone: str) -> None:
    build_method(demo_spec(method, backbone)).check(shape_of(backbone))


@pytest.fixture(scope="module")
def benches() -> dict[str, Bench]:
    """By family; loading and tokenising anew would be most of these tests' time."""
    return {}


@pytest.fixture
def bench(benches: dict[str, Bench], request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Whatever a test does on it, its backbone must be the pretrained one in the end."""
    bench = benches.setdefault(request.getfixturevalue("family"), Bench(torch.device("cpu")))
    yield bench
    if bench.num_loads:
        assert_pristine(bench)


def own_seeds(method: str) -> tuple[int, ...]:
    """As many seeds as one stack of the method takes."""
    return SEEDS[:1] if methods.find(method).trains_backbone else SEEDS


def first_tokens(stack: Stack, text: Text, *, train: bool = False) -> Tensor:
    """[S, b, D]: `text` holds the rows of every lane."""
    edits = stack.adapter.edits(train=train)
    return stack.backbone.run(text, edits)[:, 0].unflatten(0, (len(stack.lanes), -1))


@torch.no_grad()
def outputs_of(stack: Stack, text: Text) -> Tensor:
    """[S, b, D] without the head."""
    stack.adapter.activate()
    try:
        return first_tokens(stack, text)
    finally:
        stack.adapter.release()


def logits(stack: Stack, text: Text) -> Tensor:
    stack.adapter.activate()
    with torch.no_grad():
        found = stack.head(first_tokens(stack, text).flatten(0, 1), train=False)
    stack.adapter.release()
    return found


def train_steps(stack: Stack, spec: Any, bench: Bench) -> None:
    """One epoch of the trial's data."""
    losses = stack.train_epoch(bench.features(spec)["train"], 1, lambda: False)
    assert np.isfinite(losses).all()


def test_a_fresh_adapter_leaves_the_output_as_it_is(
    method: str, folder: Path, bench: Bench
) -> None:
    stack = stack_of(demo_spec(method, folder, seeds=own_seeds(method)), bench)
    rows = (7, 12) * len(stack.lanes)
    text = some_text(stack.backbone, lengths=rows)
    stack.adapter.activate()
    with torch.no_grad():
        plain = stack.backbone.run(text, Edits())
        same = torch.equal(stack.backbone.run(text, stack.adapter.edits(train=False)), plain)
        assert same is methods.find(method).identity_at_start
        source = torch.Generator().manual_seed(5)
        weights = list(stack.adapter.trainable())
        for weight in weights:
            weight += 0.3 * torch.randn(weight.shape, generator=source)
        effect = (stack.backbone.run(text, stack.adapter.edits(train=False)) - plain).abs().max()
    stack.adapter.release()
    assert (effect > 0.1) if weights else (effect == 0)


def test_two_steps_change_the_logits_of_every_lane(method: str, folder: Path, bench: Bench) -> None:
    seeds = own_seeds(method)
    spec = demo_spec(method, folder, seeds=seeds, limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    text = some_text(stack.backbone, lengths=(7, 12) * len(seeds))
    before = logits(stack, text)
    train_steps(stack, spec, bench)
    effect_S = (logits(stack, text) - before).abs().view(len(seeds), -1).amax(1)
    assert (effect_S > 1e-4).all()


def test_training_changes_nothing_but_adapter_and_head(
    method: str, folder: Path, bench: Bench
) -> None:
    spec = demo_spec(method, folder, seeds=own_seeds(method), limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    model = stack.backbone.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    buffers = {name: tensor.clone() for name, tensor in model.named_buffers()}
    own = [weight.clone() for weight in (*stack.adapter.parameters(), *stack.head.parameters())]
    train_steps(stack, spec, bench)
    assert len(before) > 40
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(torch.equal(tensor, buffers[name]) for name, tensor in model.named_buffers())
    trained = (*stack.adapter.parameters(), *stack.head.parameters())
    assert len(own) >= 4
    assert not any(torch.equal(old, new) for old, new in zip(own, trained, strict=True))


def test_gradients_reach_every_parameter_that_the_method_counts(
    method: str, folder: Path, bench: Bench
) -> None:
    seeds = own_seeds(method)
    spec = demo_spec(method, folder, seeds=seeds, limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    train_steps(stack, spec, bench)  # an up-projection that starts at zero lets nothing through
    text = some_text(stack.backbone, lengths=(7, 12, 9, 5) * len(seeds))
    labels = torch.tensor([0, 1, 1, 0]).repeat(len(seeds), 1)
    stack.adapter.activate()
    first = first_tokens(stack, text, train=True)
    outputs = stack.head(first.flatten(0, 1), train=True)
    lane_losses(outputs.view(len(seeds), 4, -1), labels).sum().backward()
    trained = [*stack.adapter.trainable(), *stack.head.parameters()]
    for weight in trained:
        assert weight.grad is not None
        lanes = weight.grad.view(len(seeds), -1) if len(seeds) > 1 else weight.grad.view(1, -1)
        assert (lanes.abs().amax(1) > 0).all(), tuple(weight.shape)
    counted = sum(weight.numel() for weight in trained)
    assert sum(parameters(method, spec.hyperparameters, str(folder), 2)) * len(seeds) == counted
    stack.backbone.model.zero_grad(set_to_none=True)
    stack.adapter.release()


def states(adapter: Adapter, backbone: Backbone, text: Text) -> Tensor:
    adapter.activate()
    try:
        with torch.no_grad():
            return backbone.run(text, adapter.edits(train=False))
    finally:
        adapter.release()


def test_a_fused_adapter_gives_the_unfused_outputs(method: str, folder: Path, bench: Bench) -> None:
    stack = stack_of(demo_spec(method, folder), bench)
    adapter, backbone = stack.adapter, stack.backbone
    text = some_text(backbone, lengths=(7, 12))
    plain = backbone.run(text, Edits())
    adapter.activate()
    source = torch.Generator().manual_seed(5)
    weights = list(adapter.trainable())
    with torch.no_grad():
        for weight in weights:
            weight += 0.3 * torch.randn(weight.shape, generator=source)
    adapter.release()
    fused = adapter.fuse(backbone)
    assert (fused is adapter) is (type(adapter).fuse is Adapter.fuse)
    expected = states(adapter, backbone, text)
    assert (states(fused, backbone, text) - expected).abs().max() <= 1e-5
    effect = (expected - plain).abs().max()
    assert (effect > 0.01) if weights else (effect == 0)
    assert torch.equal(backbone.run(text, Edits()), plain)


def test_the_state_goes_through_safetensors(
    method: str, folder: Path, tmp_path: Path, bench: Bench
) -> None:
    seeds = own_seeds(method)
    spec = demo_spec(method, folder, seeds=seeds, limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    train_steps(stack, spec, bench)
    text = some_text(stack.backbone, lengths=(7, 12) * len(seeds))
    trained = outputs_of(stack, text)
    save_file(stack.adapter.state(), tmp_path / "adapter.safetensors")
    other = stack_of(dataclasses.replace(spec, seeds=tuple(seed + 7 for seed in seeds)), bench)
    if stack.adapter.state():
        assert (outputs_of(other, text) - trained).abs().max() > 1e-4
    other.adapter.load_state(load_file(tmp_path / "adapter.safetensors"))
    assert torch.equal(outputs_of(other, text), trained)


def test_a_lane_that_stays_keeps_its_numbers(method: str, folder: Path, bench: Bench) -> None:
    spec = demo_spec(method, folder, seeds=own_seeds(method), limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    train_steps(stack, spec, bench)
    last = len(stack.lanes) - 1
    text = some_text(stack.backbone, lengths=(7, 12) * len(stack.lanes))
    before = outputs_of(stack, text)[last]
    stack.keep([last])
    alone = some_text(stack.backbone, lengths=(7, 12) * (last + 1))
    rows = slice(2 * last, None)
    alone = dataclasses.replace(
        alone,
        ids_NT=alone.ids_NT[rows],
        mask_NT=alone.mask_NT[rows],
        types_NT=None if alone.types_NT is None else alone.types_NT[rows],
        lengths_N=alone.lengths_N[rows],
    )
    assert (outputs_of(stack, alone)[0] - before).abs().max() <= 1e-5


def test_padding_never_moves_a_logit(method: str, folder: Path, bench: Bench) -> None:
    seeds = own_seeds(method)
    spec = demo_spec(method, folder, seeds=seeds, limit_train=16, batch_size=8)
    stack = stack_of(spec, bench)
    train_steps(stack, spec, bench)
    lengths = (7, 12, 9) * len(seeds)
    narrow = some_text(stack.backbone, lengths=lengths)
    wide = some_text(stack.backbone, lengths=lengths, columns=30)
    difference = (logits(stack, wide) - logits(stack, narrow)).abs().max()
    unmasked = dataclasses.replace(wide, mask_NT=torch.ones_like(wide.mask_NT))
    effect = (logits(stack, unmasked) - logits(stack, narrow)).abs().max()
    assert difference <= 1e-5
    assert effect > 1e-3


def test_a_lane_of_a_stacked_trial_is_the_run_alone(
    method: str, family: str, folder: Path, ragged_data: Path, bench: Bench
) -> None:
    spec = demo_spec(
        method,
        folder,
        seeds=SEEDS,
        data_dir=ragged_data,
        limit_train=16,
        limit_eval=16,
        batch_size=2,
    )
    lengths = bench.features(spec)["train"].lengths
    batches = epoch_batches(lengths, 2, 1, Lanes(SEEDS, bench.device).order)
    longest = np.array([lengths[rows_Sb].max(1) for rows_Sb in batches])
    assert np.ptp(longest, axis=1).max() > 5  # lanes pad each other, or this would prove little
    stacked = points_of(spec, bench)
    alone = {
        seed: runs_of(points_of(dataclasses.replace(spec, seeds=(seed,)), bench), seed)
        for seed in SEEDS
    }
    for seed, runs in alone.items():
        assert_same_run(runs_of(stacked, seed), runs)
    if family == "bert":  # places in the stack are the same to every family
        rotated = points_of(dataclasses.replace(spec, seeds=(1, 2, 0)), bench)
        for seed, runs in alone.items():
            assert_same_run(runs_of(rotated, seed), runs)
    losses_SE = np.array([[run.train_loss for run in alone[seed]] for seed in SEEDS])
    for one, other in [losses_SE[:2], losses_SE[1:], losses_SE[::2]]:
        assert abs(one - other).max() > 1e-4  # in one epoch they may meet by chance


def assert_same_run(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other) == 2
    for ours, theirs in zip(one, other, strict=True):
        assert (ours.score, ours.value, ours.state) == (theirs.score, theirs.value, theirs.state)
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
        assert ours.train_loss == pytest.approx(theirs.train_loss, abs=1e-5)


def test_the_same_seed_gives_the_same_numbers_twice(
    method: str, family: str, folder: Path, bench: Bench
) -> None:
    backbone_dropout = family == "roberta"  # on one family, off on the others
    few = {"limit_train": 16, "limit_eval": 16, "batch_size": 8}
    spec = demo_spec(method, folder, seeds=(0, 1), backbone_dropout=backbone_dropout, **few)
    first = points_of(spec, bench)
    torch.rand(1)  # nothing may hang on the global generator
    again = points_of(spec, Bench(bench.device))
    for seed in spec.seeds:
        assert numbers(runs_of(first, seed)) == numbers(runs_of(again, seed))
    other = points_of(dataclasses.replace(spec, seeds=(7,)), bench)
    assert numbers(runs_of(other, 7)) != numbers(runs_of(first, 0))


def test_every_demo_draw_is_accepted(method: str) -> None:
    space = files.load(method).space("demo", task="sst2", family="bert")
    for k in range(20):
        spec = demo_spec(method, "nowhere", hyperparameters={})
        fields = {f.name for f in dataclasses.fields(methods.find(method))}
        own = {key: value for key, value in space.draw(0, k).items() if key in fields}
        methods.find(method)(**own)
        assert spec.hyperparameters.keys() <= fields


@pytest.mark.parametrize("rate", [0, -1e-3, float("nan"), float("inf"), "1e-4", True])
def test_a_learning_rate_outside_its_domain_is_refused(method: str, rate: object) -> None:
    found = methods.find(method)
    values = demo_spec(method, "nowhere").hyperparameters | {"learning_rate": rate}
    pattern = f"{found.__name__}: learning_rate must be .*, got {rate!r}"
    with pytest.raises(ValueError, match=pattern):
        found(**values)


def test_a_hyperparameter_that_the_method_lacks_or_needs_is_refused(method: str) -> None:
    for wrong in ({"rnak": 1}, None):
        spec = demo_spec(method, "nowhere", hyperparameters=wrong)
        if wrong is None:
            spec = dataclasses.replace(spec, hyperparameters={})
        with pytest.raises(ValueError, match=f"method {method}: .*(rnak|learning_rate)"):
            build_method(spec)


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no method 'aot_fd'; known: .*aot_fc"):
        methods.find("aot_fd")
