"""LoRA and (IA)3 against HF PEFT: same weights and inputs give the same outputs and gradients.

With targets named, that is: PEFT's default targets are another method on two of the families.
"""

import copy
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor, nn

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.backbones.load import load
from trials.methods.ia3 import IA3, IA3Adapter
from trials.methods.lanes import Lanes
from trials.methods.lora import TARGETS, LoRA, LoRAAdapter
from trials.methods.method import Adapter

# S lanes, N = S x b rows, L blocks, D width, R rank

pytestmark = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning")

CPU = torch.device("cpu")
RANK, ALPHA = 4, 6.0
PATHS = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "ff_input": "intermediate.dense",
    "ff_output": "output.dense",
}
IA3_TARGETS = r".*layer\.\d+\.(attention\.self\.(key|value)|output\.dense)"
IA3_FF = r".*layer\.\d+\.output\.dense"


@pytest.fixture(params=["bert", "roberta"])
def separate(request: pytest.FixtureRequest, tiny_folders: dict[str, Path]) -> Backbone:
    """A backbone with a layer of its own for queries, keys and values each."""
    return load(str(tiny_folders[request.param]), CPU)


@pytest.fixture
def merged(tiny_folders: dict[str, Path]) -> Backbone:
    """DeBERTa, where one layer gives all three."""
    return load(str(tiny_folders["deberta"]), CPU)


def noisy(adapter: Any) -> Any:
    source = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=source)
    return adapter


def theirs(backbone: Backbone, config: peft.PeftConfig) -> Any:
    """PEFT's model around a copy of the backbone's."""
    model = peft.get_peft_model(copy.deepcopy(backbone.model), config)
    return model.eval()


def layer(model: Any, block: int, path: str) -> Any:
    return model.base_model.model.encoder.layer[block].get_submodule(path)


def lora_config(targets: Any) -> peft.LoraConfig:
    return peft.LoraConfig(
        r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, bias="none", target_modules=targets
    )


def rows_of(text: Text, rows: slice) -> Text:
    types_NT = None if text.types_NT is None else text.types_NT[rows]
    return Text(text.ids_NT[rows], text.mask_NT[rows], types_NT, text.lengths_N[rows])


def their_forward(model: Any, text: Text) -> Tensor:
    types = {} if text.types_NT is None else {"token_type_ids": text.types_NT}
    output = model(input_ids=text.ids_NT, attention_mask=text.mask_NT, **types)
    return output.last_hidden_state


def loss(h_NTD: Tensor, text: Text) -> Tensor:
    source = torch.Generator().manual_seed(1)
    direction_TD = torch.randn(h_NTD.shape[1:], generator=source) / 100
    return (h_NTD * direction_TD * text.mask_NT[..., None]).sum()


def ours(backbone: Backbone, adapter: Adapter, text: Text) -> Tensor:
    h_NTD = backbone.run(text, adapter.edits(train=True))
    loss(h_NTD, text).backward()
    return h_NTD.detach()


def assert_same(one: Tensor, other: Tensor | None) -> None:
    assert other is not None
    assert (one - other).abs().max() <= 1e-5


@pytest.mark.parametrize("targets", TARGETS)
def test_lora_is_pefts_with_the_same_targets(separate: Backbone, targets: str) -> None:
    method = LoRA(learning_rate=1e-3, rank=RANK, alpha=ALPHA, targets=targets)
    adapter: LoRAAdapter = noisy(method.attach(separate, Lanes((0, 1), CPU)))
    text = some_text(separate, lengths=(7, 12, 9, 4))
    h_NTD = ours(separate, adapter, text)
    assert (h_NTD - own_forward(separate, text)).abs().max() > 0.1
    paths = "|".join(PATHS[role].replace(".", r"\.") for role in TARGETS[targets])
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        model = theirs(separate, lora_config(rf".*layer\.\d+\.({paths})"))
        places = [(i, role) for i in range(separate.shape.num_blocks) for role in TARGETS[targets]]
        for i, role in places:
            reference = layer(model, i, PATHS[role])
            reference.lora_A.default.weight.data = adapter.down_SLIR[role][lane, i].T.clone()
            reference.lora_B.default.weight.data = adapter.up_SLRO[role][lane, i].T.clone()
        expected = their_forward(model, rows_of(text, rows))
        loss(expected, rows_of(text, rows)).backward()
        assert_same(h_NTD[rows], expected.detach())
        largest = 0.0
        for i, role in places:
            reference = layer(model, i, PATHS[role])
            for gradient, their in (
                (adapter.down_SLIR[role].grad, reference.lora_A.default.weight.grad),
                (adapter.up_SLRO[role].grad, reference.lora_B.default.weight.grad),
            ):
                assert gradient is not None
                assert_same(gradient[lane, i], their.T)
                largest = max(largest, their.abs().max().item())
        assert largest > 1e-2
        counted = sum(p.numel() for p in model.parameters() if p.requires_grad)
        assert counted * 2 == sum(weight.numel() for weight in adapter.parameters())


@pytest.mark.parametrize("targets", ["key_value_ff", "key_value"])
def test_ia3_is_pefts_with_the_same_targets(separate: Backbone, targets: str) -> None:
    method = IA3(learning_rate=1e-3, targets=targets)
    adapter: IA3Adapter = noisy(method.attach(separate, Lanes((0, 1), CPU)))
    text = some_text(separate, lengths=(7, 12, 9, 4))
    h_NTD = ours(separate, adapter, text)
    assert (h_NTD - own_forward(separate, text)).abs().max() > 0.1
    for lane, rows in enumerate((slice(0, 2), slice(2, 4))):
        if targets == "key_value_ff":
            config = peft.IA3Config(target_modules=IA3_TARGETS, feedforward_modules=IA3_FF)
        else:
            config = peft.IA3Config(target_modules=["key", "value"], feedforward_modules=[])
        model = theirs(separate, config)
        places = [
            (i, role) for i in range(separate.shape.num_blocks) for role in adapter.scales_SLX
        ]
        for i, role in places:
            vector = layer(model, i, PATHS[role]).ia3_l.default
            vector.data = adapter.scales_SLX[role][lane, i].detach().clone().view_as(vector)
        expected = their_forward(model, rows_of(text, rows))
        loss(expected, rows_of(text, rows)).backward()
        assert_same(h_NTD[rows], expected.detach())
        largest = 0.0
        for i, role in places:
            gradient = adapter.scales_SLX[role].grad
            their = layer(model, i, PATHS[role]).ia3_l.default.grad
            assert gradient is not None
            assert_same(gradient[lane, i], their.view(-1))
            largest = max(largest, their.abs().max().item())
        assert largest > 1e-2
        counted = sum(p.numel() for p in model.parameters() if p.requires_grad)
        assert counted * 2 == sum(scale.numel() for scale in adapter.parameters())


def test_pefts_default_ia3_also_scales_what_enters_the_attentions_output(
    separate: Backbone,
) -> None:
    """Its "output.dense" is the end of two names: 64,512 on RoBERTa-base for our 55,296."""
    model = theirs(separate, peft.IA3Config())
    caught = {name for name, _ in model.named_modules() if name.endswith("ia3_l")}
    assert any("attention.output.dense" in name for name in caught)
    shape = separate.shape
    counted = sum(p.numel() for p in model.parameters() if p.requires_grad)
    own = IA3(learning_rate=1e-3).attach(separate, Lanes((0,), CPU))
    more = counted - sum(scale.numel() for scale in own.parameters())
    assert more == shape.num_blocks * shape.width


def test_pefts_default_lora_on_deberta_shares_one_a_among_queries_keys_and_values(
    merged: Backbone,
) -> None:
    """Another method than ours: equal only where all our A are one."""
    model = theirs(merged, lora_config(None))
    source = torch.Generator().manual_seed(4)
    method = LoRA(learning_rate=1e-3, rank=RANK, alpha=ALPHA, targets="query_key_value")
    adapter: LoRAAdapter = noisy(method.attach(merged, Lanes((0,), CPU)))
    heads, width = merged.shape.num_heads, merged.shape.width // merged.shape.num_heads
    roles = TARGETS["query_key_value"]
    with torch.no_grad():
        for i in range(merged.shape.num_blocks):
            in_proj = layer(model, i, "attention.self.in_proj")
            a_RD, b_3DR = in_proj.lora_A.default.weight, in_proj.lora_B.default.weight
            assert a_RD.shape == (RANK, merged.shape.width)
            assert b_3DR.shape == (3 * merged.shape.width, RANK)
            b_3DR.copy_(0.1 * torch.randn(b_3DR.shape, generator=source))
            for place, role in enumerate(roles):
                starts = [(3 * head + place) * width for head in range(heads)]
                own_DR = torch.cat([b_3DR[start : start + width] for start in starts])
                adapter.down_SLIR[role][0, i] = a_RD.T
                adapter.up_SLRO[role][0, i] = own_DR.T
        text = some_text(merged, lengths=(7, 12))
        expected = their_forward(model, text)
        assert_same(merged.run(text, adapter.edits(train=False)), expected)
        assert (expected - own_forward(merged, text)).abs().max() > 1e-2
        assert rank_of_change(merged, adapter) == RANK
        assert rank_of_change(merged, noisy(adapter)) == 3 * RANK  # out of the reach of one A


def rank_of_change(merged: Backbone, adapter: LoRAAdapter) -> int:
    """Of the whole layer that gives queries, keys and values in block 0."""
    module = merged.part(0, "query").module
    assert isinstance(module, nn.Linear)
    before = module.weight.clone()
    fused = adapter.fuse(merged)
    fused.activate()
    change = (module.weight - before).double()
    fused.release()
    return int(torch.linalg.matrix_rank(change, rtol=1e-4))


def test_ours_on_deberta_is_pefts_on_a_layer_for_each_of_the_three(merged: Backbone) -> None:
    """The merged layer taken apart, PEFT's layers around the parts: the reference for shares."""
    method = LoRA(learning_rate=1e-3, rank=RANK, alpha=ALPHA, targets="query_value")
    adapter: LoRAAdapter = noisy(method.attach(merged, Lanes((0,), CPU)))
    text = some_text(merged, lengths=(7, 12))
    h_NTD = ours(merged, adapter, text)
    model = copy.deepcopy(merged.model)
    parts = []
    for i, block in enumerate(model.encoder.layer):
        attention = block.get_submodule("attention.self")
        attention.in_proj = Apart(attention.in_proj, merged.shape.num_heads)
        wrapped = peft.get_peft_model(attention.in_proj, lora_config(["query", "value"]))
        attention.in_proj = wrapped.base_model.model
        for role in ("query", "value"):
            reference = getattr(attention.in_proj, role)
            reference.lora_A.default.weight.data = adapter.down_SLIR[role][0, i].T.clone()
            reference.lora_B.default.weight.data = adapter.up_SLRO[role][0, i].T.clone()
            parts.append((i, role, reference))
    expected = their_forward(model.eval(), text)
    loss(expected, text).backward()
    assert_same(h_NTD, expected.detach())
    for i, role, reference in parts:
        down, up = adapter.down_SLIR[role].grad, adapter.up_SLRO[role].grad
        assert down is not None
        assert up is not None
        assert_same(down[0, i], reference.lora_A.default.weight.grad.T)
        assert_same(up[0, i], reference.lora_B.default.weight.grad.T)
    assert (h_NTD - own_forward(merged, text)).abs().max() > 0.1


class Apart(nn.Module):
    """DeBERTa's merged layer as three, whose outputs are put together head by head."""

    def __init__(self, merged: nn.Linear, heads: int) -> None:
        super().__init__()
        self.heads = heads
        rows = merged.weight.detach().view(heads, 3, -1, merged.in_features)
        for place, role in enumerate(("query", "key", "value")):
            linear = nn.Linear(merged.in_features, merged.out_features // 3, bias=False)
            linear.weight = nn.Parameter(rows[:, place].reshape(linear.weight.shape))
            setattr(self, role, linear)

    def forward(self, h_NTD: Tensor) -> Tensor:
        """[N, T, 3 D] in the order of the merged layer."""
        shares = [getattr(self, role)(h_NTD) for role in ("query", "key", "value")]
        split = [share.unflatten(-1, (self.heads, -1)) for share in shares]
        return torch.stack(split, -2).flatten(-3)
