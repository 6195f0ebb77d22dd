"""(IA)3: keys, values and the input of the FF's last layer scaled; fusing; counts."""

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor, nn

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.methods.ia3 import IA3, IA3Adapter
from trials.methods.lanes import Lanes

# N rows, T tokens, D width, F width inside the FF, W width of a head

CPU = torch.device("cpu")


def trained(
    backbone: Backbone, seeds: tuple[int, ...] = (0,), targets: str = "key_value_ff"
) -> IA3Adapter:
    """An adapter as training may leave it: every factor is some way from one."""
    method = IA3(learning_rate=1e-3, targets=targets)
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for scale in adapter.parameters():
            scale += 0.5 * torch.randn(scale.shape, generator=source)
    return adapter


def by_hand(adapter: IA3Adapter, backbone: Backbone, text: Text, lane: int) -> Tensor:
    """Bare hooks on Hugging Face's modules while its own forward drives."""
    hooks = []
    for i, block in enumerate(backbone.model.encoder.layer):
        scales = {role: scale[lane, i] for role, scale in adapter.scales_SLX.items()}
        attention = block.get_submodule("attention.self")
        if backbone.shape.family == "deberta":
            width = backbone.shape.width // backbone.shape.num_heads
            rows = []
            for head in range(backbone.shape.num_heads):
                own = slice(head * width, (head + 1) * width)
                rows += [torch.ones(width), scales["key"][own], scales["value"][own]]
            hooks.append(multiply_output(attention.in_proj, torch.cat(rows)))
        else:
            hooks.append(multiply_output(attention.key, scales["key"]))
            hooks.append(multiply_output(attention.value, scales["value"]))
        if "ff_output" in scales:  # the input of the last layer is the activation's output
            hooks.append(multiply_output(block.intermediate, scales["ff_output"]))
    output = own_forward(backbone, text)
    for hook in hooks:
        hook.remove()
    return output


def multiply_output(module: nn.Module, scale: Tensor):
    return module.register_forward_hook(lambda _, args, y: y * scale)


@pytest.mark.parametrize("targets", ["key_value_ff", "key_value"])
@torch.no_grad()
def test_every_lane_scales_by_its_own_vectors(backbone: Backbone, targets: str) -> None:
    adapter = trained(backbone, (0, 1), targets)
    text = some_text(backbone, lengths=(7, 12, 3, 9))
    ours = backbone.run(text, adapter.edits(train=False))
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        expected = by_hand(adapter, backbone, text, lane)[rows]
        assert (ours[rows] - expected).abs().max() <= 1e-5
        swapped = by_hand(adapter, backbone, text, 1 - lane)[rows]
        assert (ours[rows] - swapped).abs().max() > 0.1
    assert (ours - own_forward(backbone, text)).abs().max() > 0.1


@torch.no_grad()
def test_each_vector_has_an_effect_of_its_own(backbone: Backbone) -> None:
    text = some_text(backbone, lengths=(7, 12))
    plain = backbone.run(text, Edits())
    outputs = [plain]
    for role in ("key", "value", "ff_output"):
        adapter = IA3(learning_rate=1e-3).attach(backbone, Lanes((0,), CPU))
        assert torch.equal(backbone.run(text, adapter.edits(train=False)), plain)
        adapter.scales_SLX[role].mul_(1.5)
        outputs.append(backbone.run(text, adapter.edits(train=False)))
    for i, one in enumerate(outputs):
        assert all((one - other).abs().max() > 1e-2 for other in outputs[:i])


def test_every_vector_starts_at_one(backbone: Backbone) -> None:
    adapter = IA3(learning_rate=1e-3).attach(backbone, Lanes((0, 1), CPU))
    scales = dict(adapter.scales_SLX.items())
    assert set(scales) == {"key", "value", "ff_output"}
    assert all(torch.equal(scale, torch.ones_like(scale)) for scale in scales.values())


@pytest.mark.parametrize("targets", ["key_value_ff", "key_value"])
@torch.no_grad()
def test_fusing_one_lane_of_three_gives_its_outputs(backbone: Backbone, targets: str) -> None:
    adapter = trained(backbone, (0, 1, 2), targets)
    text = some_text(backbone, lengths=(7, 7, 7))
    ours = backbone.run(text, adapter.edits(train=False))
    with pytest.raises(ValueError, match="one lane, got 3"):
        adapter.fuse(backbone)
    adapter.keep([1])
    fused = adapter.fuse(backbone)
    assert not list(fused.parameters())
    fused.activate()
    difference = (backbone.run(text, Edits())[1] - ours[1]).abs().max()
    fused.release()
    assert difference <= 1e-5
    assert (backbone.run(text, Edits())[1] - ours[1]).abs().max() > 0.1


def test_the_counts_are_two_widths_and_the_ffs() -> None:
    def count(targets: str, backbone: str) -> int:
        values = {"learning_rate": 1e-3, "targets": targets}
        return parameters("ia3", values, backbone, 2)[0]

    assert count("key_value_ff", "roberta-base") == 12 * (2 * 768 + 3072) == 55_296
    assert count("key_value", "roberta-base") == 12 * 2 * 768
    assert count("key_value_ff", "deberta-xl") == 48 * (2 * 1024 + 4096)


def test_targets_outside_their_domain_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^IA3: targets must be key_value_ff or .*, got 'ff'$"):
        IA3(learning_rate=1e-3, targets="ff")
