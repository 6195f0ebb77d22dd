"""Fused weights: in the backbone while they are active, gone without a trace afterwards."""

import pytest
import torch
from tiny_backbones import own_forward, some_text

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits
from trials.backbones.shape import EMBEDDINGS
from trials.methods.fused_weights import FusedWeights, require_one_lane


def some_changes(backbone: Backbone, scale: float = 0.3) -> FusedWeights:
    source = torch.Generator().manual_seed(1)

    def drawn(width: int, inputs: int | None = None) -> torch.Tensor:
        shape = (width,) if inputs is None else (width, inputs)
        return scale * torch.randn(shape, generator=source)

    width, ff_width = backbone.shape.width, backbone.shape.ff_width
    weights = {
        (0, "query"): drawn(width, width),
        (0, "value"): drawn(width, width),
        (2, "ff_output"): drawn(width, ff_width),
    }
    biases = {
        (1, "query"): drawn(width),
        (1, "value"): drawn(width),
        (EMBEDDINGS, "embedding_norm"): drawn(width),
    }
    return FusedWeights(backbone, weights=weights, biases=biases)


@torch.no_grad()
def test_they_are_there_while_active_and_gone_to_the_bit_afterwards(backbone: Backbone) -> None:
    before = {name: weight.clone() for name, weight in backbone.model.named_parameters()}
    text = some_text(backbone, lengths=(7, 12))
    plain = own_forward(backbone, text)
    fused = some_changes(backbone)
    for _ in range(3):
        fused.activate()
        changed = {
            name
            for name, weight in backbone.model.named_parameters()
            if not torch.equal(weight, before[name])
        }
        assert len(changed) == (5 if backbone.shape.family == "deberta" else 6)
        assert (own_forward(backbone, text) - plain).abs().max() > 0.1
        assert torch.equal(
            backbone.run(text, fused.edits(train=False)), own_forward(backbone, text)
        )
        fused.release()
        for name, weight in backbone.model.named_parameters():
            assert torch.equal(weight, before[name]), name
            assert not weight.requires_grad, name
    assert torch.equal(backbone.run(text, Edits()), plain)


@torch.no_grad()
def test_what_adding_and_subtracting_would_lose_comes_back(backbone: Backbone) -> None:
    before = backbone.part(0, "query").weight.clone()
    fused = some_changes(backbone, scale=1e6)
    fused.activate()
    there = backbone.part(0, "query").weight
    subtracted = there - fused._weights[0, "query"].view_as(there)
    assert not torch.equal(subtracted, before)
    fused.release()
    assert torch.equal(backbone.part(0, "query").weight, before)


@torch.no_grad()
def test_a_share_of_a_merged_layer_is_its_role_head_by_head(backbone: Backbone) -> None:
    """A change of values alone moves what the role gives, and what no other role gives."""
    text = some_text(backbone, lengths=(7, 12))
    roles = ("query", "key", "value")

    def given() -> dict[str, torch.Tensor]:
        seen = {}

        def note(role: str):
            def edit(x: torch.Tensor, y: torch.Tensor, _: object) -> torch.Tensor:
                seen[role] = y
                return y

            return edit

        backbone.run(text, Edits(outputs={(0, role): note(role) for role in roles}))
        return seen

    before = given()
    change = torch.randn(backbone.shape.width, backbone.shape.width)
    fused = FusedWeights(backbone, weights={(0, "value"): change}, biases={})
    fused.activate()
    after = given()
    fused.release()
    entering = before_block_0(backbone, text)
    assert torch.allclose(after["value"], before["value"] + entering @ change.T, atol=1e-4)
    assert (after["value"] - before["value"]).abs().max() > 0.1
    assert torch.equal(after["query"], before["query"])
    assert torch.equal(after["key"], before["key"])


def before_block_0(backbone: Backbone, text: object) -> torch.Tensor:
    entered = []

    def note(h: torch.Tensor, *_: object) -> torch.Tensor:
        entered.append(h)
        return h

    backbone.run(text, Edits(hidden={0: note}))
    return entered[0]


def test_release_without_activate_changes_nothing(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    plain = backbone.run(text, Edits())
    some_changes(backbone).release()
    assert torch.equal(backbone.run(text, Edits()), plain)


@pytest.mark.parametrize("num_lanes", [0, 3])
def test_several_lanes_are_refused(num_lanes: int) -> None:
    with pytest.raises(ValueError, match=f"holds the weights of one lane, got {num_lanes}; keep"):
        require_one_lane(num_lanes)
    require_one_lane(1)
