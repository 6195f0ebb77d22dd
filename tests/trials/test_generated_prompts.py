"""LPT and ID-SPAM: the rows they make, where these go, the papers' counts, refusals."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor, nn

from orchestrator.fit import parameters
from trials.backbones.backbone import Backbone
from trials.backbones.edits import Text
from trials.backbones.files import shape_of
from trials.backbones.load import load
from trials.methods.generated_prompts import GeneratedPromptAdapter, GeneratedPromptMethod
from trials.methods.id_spam import IdSpam, IdSpamAdapter
from trials.methods.lanes import Lanes
from trials.methods.lpt import LPT, LPTAdapter, pooled

# N rows, n tokens of one text, T tokens, P prompt rows, D width, R bottleneck

CPU = torch.device("cpu")
COMMON: dict[str, Any] = {"learning_rate": 1e-3, "insertion_layer": 1, "prompt_length": 4}
LPT_VALUES = COMMON | {"bottleneck": 6}
METHODS = {
    "naive": LPT(**LPT_VALUES),
    "naive, biases": LPT(**LPT_VALUES, bias=True),
    "max": LPT(**LPT_VALUES, generator="pooling"),
    "average, biases": LPT(**LPT_VALUES, generator="pooling", pooling="average", bias=True),
    "attention": IdSpam(**COMMON, bottleneck=16),
    "mean, biases": IdSpam(**COMMON, bottleneck=16, pooling="mean", bias=True),
    "outer relu": IdSpam(**COMMON, bottleneck=16, outer_relu=True),
    "paper_count": IdSpam(**COMMON, count_mode="paper_count"),
}
LENGTHS = (7, 12, 3)


@pytest.fixture(params=["bert", "roberta"])
def encoder(request: pytest.FixtureRequest, tiny_folders: dict[str, Path]) -> Backbone:
    return load(str(tiny_folders[request.param]), CPU)


@pytest.fixture
def bert(tiny_bert: Path) -> Backbone:
    return load(str(tiny_bert), CPU)


def attached(
    method: GeneratedPromptMethod, backbone: Backbone, seeds: tuple[int, ...] = (0,)
) -> GeneratedPromptAdapter:
    adapter = method.attach(backbone, Lanes(seeds, CPU))
    assert isinstance(adapter, GeneratedPromptAdapter)
    with torch.no_grad():
        for weight in adapter.parameters():
            weight *= 3  # rows as large as the states: their effect must show
    return adapter


def through(network: nn.Module, x: Tensor, spans: Any = None) -> Tensor:
    """W_up relu(pool(W_down x + b)) + b' of the first lane."""
    down_DR, up_RO = network.down_SIR[0], network.up_SRO[0]
    biases = (network.down_bias_SR, network.up_bias_SO)
    down_bias_R, up_bias_O = (0 if bias is None else bias[0] for bias in biases)
    inner = x @ down_DR + down_bias_R
    inner = inner if spans is None else spans(inner.T).T
    return inner.clamp(min=0) @ up_RO + up_bias_O


def rows_by_hand(adapter: GeneratedPromptAdapter, states_nD: Tensor, words_nD: Tensor) -> Tensor:
    """[P, D] of one text, from nothing but its own tokens."""
    width = states_nD.shape[1]
    if isinstance(adapter, LPTAdapter):
        if adapter.method.generator == "naive":
            return through(adapter.network, states_nD[0]).view(-1, width)
        spans = {"max": nn.AdaptiveMaxPool1d(4), "average": nn.AdaptiveAvgPool1d(4)}
        return through(adapter.network, states_nD, spans[adapter.method.pooling])
    assert isinstance(adapter, IdSpamAdapter)
    context_D = words_nD.mean(0)
    if adapter.method.pooling == "attention":
        maps = (adapter.query_SDD, adapter.key_SDD, adapter.value_SDD)
        query_nD, key_nD, value_nD = (words_nD @ map_SDD[0] for map_SDD in maps)
        weights_nn = torch.softmax(query_nD @ key_nD.T / math.sqrt(width), 1)
        context_D = (weights_nn @ value_nD).mean(0)
    rows = through(adapter.network, context_D)
    rows = rows.clamp(min=0) if adapter.method.outer_relu else rows
    return rows.view(-1, width).repeat(4 * width // len(rows), 1)


def by_hand(adapter: GeneratedPromptAdapter, backbone: Backbone, text: Text) -> Tensor:
    """Hugging Face's own forward, with hooks that put the rows in and widen the masks."""
    words_NTD = backbone.model.get_input_embeddings()(text.ids_NT)
    first = adapter.first_block

    def rows(states_NTD: Tensor) -> Tensor:
        return torch.stack(
            [
                rows_by_hand(adapter, states_nD[:length], words_nD[:length])
                for states_nD, words_nD, length in zip(
                    states_NTD, words_NTD, text.lengths_N, strict=True
                )
            ]
        )

    mask_NT = torch.cat([torch.ones(len(text), 4).long(), text.mask_NT], 1)
    if first == 0:
        types = {} if text.types_NT is None else {"token_type_ids": mask_NT * 0}
        if text.types_NT is not None:
            types["token_type_ids"][:, 4:] = text.types_NT
        both_NTD = torch.cat([rows(words_NTD), words_NTD], 1)
        output = backbone.model(inputs_embeds=both_NTD, attention_mask=mask_NT, **types)
        return output.last_hidden_state[:, 4:]

    wide = torch.where(mask_NT.bool(), 0.0, -1e9)[:, None, None]

    def widen(index: int) -> Any:
        def hook(_: nn.Module, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
            h_NTD = args[0]
            if index == first:
                h_NTD = torch.cat([rows(h_NTD), h_NTD], 1)
            if "attention_mask" in options:
                return (h_NTD, *args[1:]), options | {"attention_mask": wide}
            return (h_NTD, wide, *args[2:]), options

        return hook

    blocks = list(enumerate(backbone.model.encoder.layer))[first:]
    hooks = [
        block.register_forward_pre_hook(widen(index), with_kwargs=True) for index, block in blocks
    ]
    output = own_forward(backbone, text)
    for hook in hooks:
        hook.remove()
    return output[:, 4:]


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("name", list(METHODS))
@torch.no_grad()
def test_the_rows_are_the_formula_s_and_enter_at_the_insertion_layer(
    encoder: Backbone, name: str, layer: int
) -> None:
    method = dataclasses.replace(METHODS[name], insertion_layer=layer)
    adapter = attached(method, encoder)
    text = some_text(encoder, lengths=LENGTHS)
    ours = encoder.run(text, adapter.edits(train=False))
    kept = text.mask_NT.bool()
    difference = (ours - by_hand(adapter, encoder, text))[kept].abs().max()
    effect = (ours - own_forward(encoder, text))[kept].abs().max()
    assert difference <= 1e-5
    assert effect > 0.05
    other = attached(dataclasses.replace(method, insertion_layer=(layer + 1) % 3), encoder)
    assert (ours - by_hand(other, encoder, text))[kept].abs().max() > 1e-2


@pytest.mark.parametrize("name", list(METHODS))
@torch.no_grad()
def test_padding_is_in_no_row(bert: Backbone, name: str) -> None:
    adapter = attached(METHODS[name], bert)
    narrow, wide = (some_text(bert, lengths=LENGTHS, columns=c) for c in (12, 30))
    source = torch.Generator().manual_seed(0)
    states_NTD = torch.randn(3, 30, bert.shape.width, generator=source)
    ours = adapter.generate(states_NTD, wide, bert.words(wide.ids_NT))
    expected = adapter.generate(states_NTD[:, :12], narrow, bert.words(narrow.ids_NT))
    assert (ours - expected).abs().max() <= 1e-5
    unmasked = dataclasses.replace(wide, mask_NT=torch.ones_like(wide.mask_NT))
    effect = (adapter.generate(states_NTD, unmasked, bert.words(wide.ids_NT)) - ours).abs().max()
    assert (effect.item() > 1e-3) is (not name.startswith("naive"))


@pytest.mark.parametrize("pooling", ["max", "average"])
@pytest.mark.parametrize("num_spans", [1, 3, 10, 16])
def test_spans_are_those_of_torch_s_adaptive_pooling(pooling: Any, num_spans: int) -> None:
    kinds = {"max": nn.AdaptiveMaxPool1d, "average": nn.AdaptiveAvgPool1d}
    lengths = [*range(1, 25), 40]
    h_NTR = torch.randn(len(lengths), 40, 5, generator=torch.Generator().manual_seed(0))
    mask_NT = (torch.arange(40) < torch.tensor(lengths)[:, None]).long()
    ours = pooled(h_NTR, mask_NT, num_spans, pooling)
    for row, length in enumerate(lengths):
        expected = kinds[pooling](num_spans)(h_NTR[row, :length].T).T
        assert (ours[row] - expected).abs().max() <= 1e-6, length


@torch.no_grad()
def test_id_spam_looks_at_words_and_lpt_at_states(bert: Backbone) -> None:
    text = some_text(bert, lengths=LENGTHS)
    words_NTD, other_NTD = bert.words(text.ids_NT), torch.ones(3, 12, bert.shape.width)
    for name, method in METHODS.items():
        adapter = attached(method, bert)
        rows = adapter.generate(words_NTD, text, words_NTD)
        same = torch.equal(rows, adapter.generate(other_NTD, text, words_NTD))
        assert same is isinstance(method, IdSpam), name
        same = torch.equal(rows, adapter.generate(words_NTD, text, other_NTD))
        assert same is isinstance(method, LPT), name


@torch.no_grad()
def test_only_paper_count_repeats_one_row(bert: Backbone) -> None:
    text = some_text(bert, lengths=LENGTHS)
    words_NTD = bert.words(text.ids_NT)
    for name, method in METHODS.items():
        rows_NPD = attached(method, bert).generate(words_NTD, text, words_NTD)
        assert rows_NPD.shape == (3, 4, bert.shape.width)
        same = torch.equal(rows_NPD[:, 0], rows_NPD[:, 3])
        assert same is (name == "paper_count")
        assert bool((rows_NPD >= 0).all()) is (name == "outer relu")


@pytest.mark.parametrize("name", ["naive", "max", "attention"])
@torch.no_grad()
def test_dropout_is_on_the_rows_in_training_only(bert: Backbone, name: str) -> None:
    text = some_text(bert, lengths=LENGTHS)
    method = dataclasses.replace(METHODS[name], dropout=0.5)
    adapter = attached(method, bert)
    still = bert.run(text, adapter.edits(train=False))
    assert torch.equal(still, bert.run(text, adapter.edits(train=False)))
    first, second = (bert.run(text, adapter.edits(train=True)) for _ in range(2))
    assert (first - still).abs().max() > 1e-2
    assert (first - second).abs().max() > 1e-2
    words_NTD = bert.words(text.ids_NT)
    whole = adapter.generate(words_NTD, text, words_NTD)
    rows = adapter.edits(train=True).rows[1](words_NTD, text, words_NTD)
    assert torch.isclose(rows, 2 * whole).logical_or(rows == 0).all()
    assert 0.3 < (rows == 0).float().mean() < 0.7
    without = attached(dataclasses.replace(method, dropout=0.0), bert)
    assert torch.equal(bert.run(text, without.edits(train=True)), still)


@pytest.mark.parametrize("name", ["naive, biases", "average, biases", "attention"])
@torch.no_grad()
def test_each_lane_generates_with_its_own_weights(bert: Backbone, name: str) -> None:
    text = some_text(bert, lengths=LENGTHS)
    twice = Text(*(torch.cat([part, part]) for part in (text.ids_NT, text.mask_NT, text.types_NT)))
    both = bert.run(twice, attached(METHODS[name], bert, (0, 1)).edits(train=False))
    for lane, ours in enumerate(both.split(3)):
        alone = bert.run(text, attached(METHODS[name], bert, (lane,)).edits(train=False))
        assert (ours - alone).abs().max() <= 1e-5
    assert (both[:3] - both[3:]).abs().max() > 1e-2


@torch.no_grad()
def test_there_is_nothing_to_fuse(bert: Backbone) -> None:
    text = some_text(bert, lengths=LENGTHS)
    for method in METHODS.values():
        adapter = attached(method, bert)
        outputs = bert.run(text, adapter.edits(train=False))
        assert torch.equal(bert.run(text, adapter.fuse(bert).edits(train=False)), outputs)


def test_first_values_are_those_of_torch_s_linear_layers(tiny_bert: Path) -> None:
    backbone = load(str(tiny_bert), CPU)
    lanes = Lanes((0, 1), CPU)
    adapter = IdSpam(**COMMON, bottleneck=25, bias=True).attach(backbone, lanes)
    inputs = {"up_SRO": 25, "up_bias_SO": 25}
    names = [name.split(".")[-1] for name, _ in adapter.named_parameters()]
    assert sorted(names) == sorted(
        ["query_SDD", "key_SDD", "value_SDD", "down_SIR", "up_SRO", "down_bias_SR", "up_bias_SO"]
    )
    for name, weight in zip(names, adapter.parameters(), strict=True):
        bound = 1 / math.sqrt(inputs.get(name, backbone.shape.width))
        assert 0.8 * bound < weight.abs().max() <= bound, name
        assert weight.mean().abs() < 0.3 * bound
        assert not torch.equal(weight[0], weight[1])


PAPER = {"learning_rate": 1e-3, "insertion_layer": 1}
COUNTS = [
    ("lpt", {"bottleneck": 256}, 2_162_688, 2_883_584),
    ("lpt", {"bottleneck": 256, "bias": True}, 2_162_688 + 256 + 7_680, 2_883_584 + 256 + 10_240),
    ("lpt", {"bottleneck": 192, "generator": "pooling"}, 384 * 768, 384 * 1024),
    ("id_spam", {"count_mode": "paper_count"}, 2_064_384, 3_538_944),
    ("id_spam", {"bottleneck": 35}, 2_065_152, 3_539_968),
    ("id_spam", {"bottleneck": 35, "bias": True}, 2_065_152 + 7_715, 3_539_968 + 10_275),
    ("id_spam", {"pooling": "mean"}, 11 * 32 * 768, 11 * 32 * 1024),
]


@pytest.mark.parametrize(("method", "values", "base", "large"), COUNTS)
def test_counts_are_the_paper_s(method: str, values: dict[str, Any], base: int, large: int) -> None:
    for backbone, count in {"roberta-base": base, "roberta-large": large}.items():
        assert parameters(method, PAPER | values, backbone, 2)[0] == count


def test_only_rows_at_the_word_embeddings_take_positions() -> None:
    for method in (LPT, IdSpam):
        for layer, positions in ((0, 10), (1, 0), (11, 0)):
            values = {"learning_rate": 1e-3, "insertion_layer": layer, "bottleneck": 32}
            assert method(**values).num_positions == positions


def test_a_layer_that_the_backbone_lacks_is_refused() -> None:
    for method, backbone, last in (
        (LPT, "minilm", 5),
        (IdSpam, "roberta-base", 11),
        (IdSpam, "deberta-xl", 47),
    ):
        values = {"learning_rate": 1e-3, "bottleneck": 32}
        shape = shape_of(backbone)
        for layer in (0, last):
            method(**values, insertion_layer=layer).check(shape)
        one_more = last + 1
        pattern = f"^{method.__name__}: insertion_layer must be in .0, {last}. .*, got {one_more}$"
        with pytest.raises(ValueError, match=pattern):
            method(**values, insertion_layer=one_more).check(shape)


def test_a_prompt_that_leaves_a_text_no_position_is_refused_at_layer_0_only() -> None:
    for method in (LPT, IdSpam):
        values = {"learning_rate": 1e-3, "bottleneck": 32, "prompt_length": 600}
        method(**values, insertion_layer=1).check(shape_of("minilm"))
        with pytest.raises(ValueError, match=r"prompt_length must be at most 504 .*, got 600"):
            method(**values, insertion_layer=0).check(shape_of("minilm"))


@pytest.mark.parametrize(
    ("method", "field", "value"),
    [
        (LPT, "insertion_layer", -1),
        (LPT, "insertion_layer", 2.0),
        (LPT, "prompt_length", 0),
        (LPT, "bottleneck", 0),
        (LPT, "dropout", 1.0),
        (LPT, "dropout", float("nan")),
        (LPT, "bias", 1),
        (LPT, "generator", "npg"),
        (LPT, "pooling", "mean"),
        (IdSpam, "bottleneck", 0),
        (IdSpam, "pooling", "max"),
        (IdSpam, "count_mode", "paper"),
        (IdSpam, "outer_relu", "no"),
        (IdSpam, "dropout", -0.1),
    ],
)
def test_values_outside_their_domain_are_refused(
    method: type[GeneratedPromptMethod], field: str, value: object
) -> None:
    values = COMMON | {"bottleneck": 6, field: value}
    with pytest.raises(ValueError, match=f"^{method.__name__}: {field} must be .*, got {value!r}$"):
        method(**values)


def test_the_paper_s_count_leaves_no_choice_of_a_bottleneck() -> None:
    with pytest.raises(ValueError, match=r"bottleneck must be left out .* has 192, got 64"):
        IdSpam(**COMMON, bottleneck=64, count_mode="paper_count")
