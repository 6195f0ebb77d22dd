"""Each edit point against Hugging Face's own forward, driven by bare hooks and arguments."""

# N rows, T tokens, P prompt rows, F rows and tokens, D width, H heads, W width of a head

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from tiny_backbones import own_forward, some_text
from torch import Tensor
from torch.nn import functional as F
from transformers import DynamicCache

from trials.backbones.backbone import Backbone
from trials.backbones.edits import Edits, Text
from trials.backbones.files import shape_of
from trials.backbones.shape import EMBEDDINGS, Role

TEXTS = {"no padding": (9, 9, 9), "right padding": (5, 12, 9)}
ROLES: tuple[Role, ...] = get_args(Role)


@pytest.fixture(params=list(TEXTS))
def text(request: pytest.FixtureRequest, backbone: Backbone) -> Text:
    return some_text(backbone, lengths=TEXTS[request.param])


def noise(*sizes: int, seed: int = 11) -> Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed))


def at_tokens(h_NTD: Tensor, text: Text) -> Tensor:
    return h_NTD[text.mask_NT.bool()]


def effect_on(h_NTD: Tensor, backbone: Backbone, text: Text) -> float:
    """How far these states are from those of the plain model."""
    return (at_tokens(h_NTD, text) - at_tokens(own_forward(backbone, text), text)).abs().max()


def positions(backbone: Backbone, mask_NT: Tensor, first: int = 0) -> Tensor:
    """What Hugging Face counts for this mask, begun by `first` later."""
    if backbone.shape.family == "roberta":
        return (mask_NT.cumsum(1) + first) * mask_NT + backbone.model.config.pad_token_id
    return torch.arange(first, first + mask_NT.shape[1]).expand_as(mask_NT)


def types(text: Text, front: int = 0) -> dict[str, Tensor]:
    return {} if text.types_NT is None else {"token_type_ids": F.pad(text.types_NT, (front, 0))}


def embedded(
    backbone: Backbone, words_NTD: Tensor, mask_NT: Tensor, *, first: int = 0, **more: Tensor
) -> Tensor:
    """Hugging Face's forward of word embeddings, with positions counted by the mask."""
    counted = {"position_ids": positions(backbone, mask_NT, first)}
    return backbone.model(
        inputs_embeds=words_NTD, attention_mask=mask_NT, **{**counted, **more}
    ).last_hidden_state


def block_mask(backbone: Backbone, mask_NT: Tensor) -> Tensor | None:
    """What Hugging Face's forward gives its blocks for a mask."""
    given: list[Tensor | None] = []
    hook = backbone.blocks[0].register_forward_pre_hook(lambda _, args: given.append(args[1]))
    embedded(backbone, torch.zeros(*mask_NT.shape, backbone.shape.width), mask_NT)
    hook.remove()
    return given[0]


def there_from_the_start(
    backbone: Backbone, text: Text, rows: dict[int, Tensor], *, first: int = 0
) -> Tensor:
    """Rows before blocks without any insertion: all are there from the start; those of block i are
    masked as keys below it, and there replaced and unmasked. `first` moves the text's positions."""
    in_order = [
        rows[block] for block in sorted(rows, reverse=True)
    ]  # the last to enter stand first
    front = sum(own.shape[1] for own in in_order)
    masks = [block_mask(backbone, masked(text, rows, i)) for i in range(backbone.shape.num_blocks)]
    hooks = []
    for index, (block, mask) in enumerate(zip(backbone.blocks, masks, strict=True)):
        own = rows.get(index) if index else None
        enter = entering(num_masked(rows, index), own, mask)
        hooks.append(block.register_forward_pre_hook(enter))
    mask_NT, blank = masked(text, rows, 0), num_masked(rows, 0)
    counted_NT = positions(backbone, mask_NT[:, blank:], first)
    found = embedded(
        backbone,
        torch.cat([*in_order, backbone.words(text.ids_NT)], 1),
        mask_NT,
        position_ids=F.pad(counted_NT, (blank, 0), value=1),
        **types(text, front),
    )
    for hook in hooks:
        hook.remove()
    return found[:, front:]


def num_masked(rows: dict[int, Tensor], index: int) -> int:
    """How many rows must not be seen in a block."""
    return sum(own.shape[1] for block, own in rows.items() if block > index)


def masked(text: Text, rows: dict[int, Tensor], index: int) -> Tensor:
    """The mask of all rows and the text, as it is in a block."""
    mask_NT = F.pad(text.mask_NT, (num_masked(rows, -1), 0), value=1)
    mask_NT[:, : num_masked(rows, index)] = 0
    return mask_NT


def entering(first: int, rows_NPD: Tensor | None, mask: Tensor | None) -> Callable[..., Any]:
    def enter(_: object, args: tuple[Any, ...]) -> tuple[Any, ...]:
        h_NFD = args[0].clone()
        if rows_NPD is not None:
            h_NFD[:, first : first + rows_NPD.shape[1]] = rows_NPD
        return (h_NFD, mask, *args[2:])

    return enter


def giving(rows: dict[int, Tensor]) -> Edits:
    return Edits(rows={block: lambda *_, own=own: own for block, own in rows.items()})


@pytest.mark.parametrize("blocks", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
@torch.no_grad()
def test_rows_equal_rows_that_were_there_all_along_but_masked(
    backbone: Backbone, text: Text, blocks: tuple[int, ...]
) -> None:
    rows = {i: noise(len(text), 2 + i, backbone.shape.width, seed=i) for i in blocks}
    walked = backbone.run(text, giving(rows))
    expected = there_from_the_start(backbone, text, rows)
    assert walked.shape == (*text.ids_NT.shape, backbone.shape.width)
    difference = (at_tokens(walked, text) - at_tokens(expected, text)).abs().max()
    assert difference <= (0 if blocks == (0,) else 1e-5)  # masked columns change the order of sums
    assert effect_on(walked, backbone, text) > 0.1


@pytest.mark.parametrize("block", [0, 1, 2])
@torch.no_grad()
def test_rows_at_block_0_move_the_texts_positions_and_later_ones_do_not(
    backbone: Backbone, text: Text, block: int
) -> None:
    rows = {block: noise(len(text), 3, backbone.shape.width)}
    walked = at_tokens(backbone.run(text, giving(rows)), text)
    moved = at_tokens(there_from_the_start(backbone, text, rows, first=1), text)
    embedding = backbone.model.embeddings.position_embeddings
    if backbone.shape.family == "deberta":
        assert embedding is None
        assert (moved - walked).abs().max() <= 1e-5
        return
    assert (moved - walked).abs().max() > 0.1
    seen: list[Tensor] = []
    hook = embedding.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    backbone.run(text, giving(rows))
    hook.remove()
    front = 0 if block else 3
    counted_NT = seen[0].expand(len(text), -1)[:, front:]
    own_NT = positions(backbone, text.mask_NT, first=front)
    assert torch.equal(at_tokens(counted_NT, text), at_tokens(own_NT, text))


@torch.no_grad()
def test_rows_may_depend_on_what_enters_their_block(backbone: Backbone, text: Text) -> None:
    more = types(text)
    output = backbone.model(
        input_ids=text.ids_NT, attention_mask=text.mask_NT, **more, output_hidden_states=True
    )
    words_NTD = backbone.words(text.ids_NT)
    entered = {0: words_NTD, 1: output.hidden_states[1], 2: output.hidden_states[2]}
    for block, states_NTD in entered.items():
        seen: list[tuple[Tensor, Text, Tensor]] = []

        def rows(*args: Any, seen: list[Any] = seen) -> Tensor:
            seen.append(args)
            return args[0][:, :2]

        backbone.run(text, Edits(rows={block: rows}))
        ((h_NTD, seen_text, seen_NTD),) = seen
        assert torch.equal(h_NTD, states_NTD)
        assert seen_text is text
        assert torch.equal(seen_NTD, words_NTD)


@torch.no_grad()
def test_word_offsets_equal_hugging_faces_forward_of_the_sums(
    backbone: Backbone, text: Text
) -> None:
    offset_NTD = noise(*text.ids_NT.shape, backbone.shape.width)
    words_NTD = backbone.words(text.ids_NT)

    def add(h_NTD: Tensor, seen: Text) -> Tensor:
        assert seen is text
        assert torch.equal(h_NTD, words_NTD)
        return h_NTD + offset_NTD

    walked = backbone.run(text, Edits(words=add))
    expected = embedded(backbone, words_NTD + offset_NTD, text.mask_NT, **types(text))
    assert torch.equal(walked, expected)
    assert effect_on(walked, backbone, text) > 0.1


@torch.no_grad()
def test_rows_before_offset_words_get_both_the_sums_and_the_frozen_words(
    backbone: Backbone, text: Text
) -> None:
    offset_NTD = noise(*text.ids_NT.shape, backbone.shape.width)
    words_NTD = backbone.words(text.ids_NT)
    rows_NPD = noise(len(text), 2, backbone.shape.width, seed=3)

    def rows(edited_NTD: Tensor, _: Text, frozen_NTD: Tensor) -> Tensor:
        assert torch.equal(edited_NTD, words_NTD + offset_NTD)
        assert torch.equal(frozen_NTD, words_NTD)
        return rows_NPD

    walked = backbone.run(text, Edits(words=lambda h, _: h + offset_NTD, rows={0: rows}))
    both_NTD = torch.cat([rows_NPD, words_NTD + offset_NTD], 1)
    mask_NT = F.pad(text.mask_NT, (2, 0), value=1)
    expected = embedded(backbone, both_NTD, mask_NT, **types(text, front=2))[:, 2:]
    assert torch.equal(walked, expected)
    assert (walked - backbone.run(text, giving({0: rows_NPD}))).abs().max() > 0.1


def context_of(backbone: Backbone, text: Text, outputs: dict[Any, Any], block: int = 1) -> Tensor:
    """What attention gives to its output layer in a block."""
    seen: list[Tensor] = []

    def note(x_NTD: Tensor, y_NTD: Tensor, _: Text) -> Tensor:
        seen.append(x_NTD)
        return y_NTD

    backbone.run(text, Edits(outputs={**outputs, (block, "attention_output"): note}))
    return seen[0]


@torch.no_grad()
def test_what_is_added_to_values_comes_out_of_attention(backbone: Backbone, text: Text) -> None:
    c_D = noise(backbone.shape.width)
    before = context_of(backbone, text, {})
    added = context_of(backbone, text, {(1, "value"): lambda x, y, _: y + c_D})
    assert (added - before - c_D).abs().max() <= 1e-5
    for role in ("query", "key"):
        other = context_of(backbone, text, {(1, role): lambda x, y, _: y + noise(*y.shape)})
        assert (other - before - c_D).abs().max() > 0.1
        assert at_tokens(other - before, text).abs().max() > 1e-2


@pytest.mark.parametrize(("zero", "noisy"), [("query", "key"), ("key", "query")])
@torch.no_grad()
def test_without_queries_keys_do_not_matter_nor_the_reverse(
    backbone: Backbone, text: Text, zero: Role, noisy: Role
) -> None:
    for block in backbone.blocks:
        if (
            backbone.shape.family == "deberta"
        ):  # positions meet queries and keys on ways of their own
            block.get_submodule("attention.self").relative_attention = False
    late = backbone.part(1, zero).late_bias
    silent = torch.zeros(backbone.shape.width) if late is None else -late

    def shut(x_NTD: Tensor, y_NTD: Tensor, _: Text) -> Tensor:
        return silent.expand_as(y_NTD)

    def shake(x_NTD: Tensor, y_NTD: Tensor, _: Text) -> Tensor:
        return y_NTD + noise(*y_NTD.shape)

    alone = context_of(backbone, text, {(1, zero): shut})
    both = context_of(backbone, text, {(1, zero): shut, (1, noisy): shake})
    assert torch.equal(alone, both)
    plain = context_of(backbone, text, {})
    assert at_tokens(plain - alone, text).abs().max() > 0.1
    shaken = context_of(backbone, text, {(1, noisy): shake})
    assert at_tokens(plain - shaken, text).abs().max() > 0.1


def test_the_part_of_a_role_has_the_sizes_that_the_shape_says(backbone: Backbone) -> None:
    shape = backbone.shape
    for role in ROLES:
        if role == "position_query" and shape.family != "deberta":
            continue
        part = backbone.part(EMBEDDINGS if role == "embedding_norm" else 1, role)
        if role.endswith("norm"):
            assert part.weight.numel() == shape.width
        elif role == "position_query":
            assert part.weight.flatten(0, -2).shape == (shape.width, shape.width)
        else:
            inputs, outputs = shape.linear(role)
            assert part.weight.flatten(0, -2).shape == (outputs, inputs)
            assert part.module(noise(2, 3, inputs)).shape == (2, 3, outputs * part.parts)
            continue
        with pytest.raises(KeyError):
            shape.linear(role)


def test_the_shape_lists_the_biases_that_the_blocks_have_and_no_other(backbone: Backbone) -> None:
    shape = backbone.shape
    listed = [backbone.part(EMBEDDINGS, "embedding_norm").bias]
    for block in range(shape.num_blocks):
        for role, width in shape.biases.items():
            bias = backbone.part(block, role).bias
            assert bias is not None
            assert bias.numel() == width
            listed.append(bias)
    named = {n: p for n, p in backbone.model.named_parameters() if n.endswith("bias")}
    assert {bias.data_ptr() for bias in listed} == {bias.data_ptr() for bias in named.values()}
    assert len(listed) == len(named)
    in_blocks = sum(p.numel() for n, p in named.items() if not n.startswith("embeddings"))
    assert sum(shape.biases.values()) * shape.num_blocks == in_blocks
    assert ("key" in shape.biases) is (shape.family != "deberta")
    assert ("position_query" in shape.biases) is (shape.family == "deberta")


@pytest.mark.parametrize(
    ("name", "count"),
    [("roberta-base", 102_144), ("roberta-large", 271_360), ("deberta-xl", 541_696)],
)
def test_the_papers_backbones_have_as_many_biases_as_bitfit_trains(name: str, count: int) -> None:
    shape = shape_of(name)
    assert sum(shape.biases.values()) * shape.num_blocks + shape.width == count


@torch.no_grad()
def test_adding_to_the_output_of_a_role_is_adding_to_its_bias(
    backbone: Backbone, text: Text
) -> None:
    places: list[tuple[int, Role]] = [(1, role) for role in backbone.shape.biases]
    for block, role in [(EMBEDDINGS, "embedding_norm"), *places]:
        part = backbone.part(block, role)
        assert part.bias is not None
        before, shift = part.bias.clone(), noise(part.bias.numel())
        edit = {(block, role): lambda x, y, _, shift=shift: y + shift}
        walked = backbone.run(text, Edits(outputs=edit))
        effect = effect_on(walked, backbone, text)
        part.bias.add_(shift.view_as(part.bias))
        expected = own_forward(backbone, text)
        part.bias.copy_(before)
        assert (at_tokens(walked, text) - at_tokens(expected, text)).abs().max() <= 1e-5, role
        if role == "key":
            assert effect <= 1e-5  # it moves all scores of a query alike
        else:
            assert effect > 0.1, role


def filled(prefixes: list[tuple[Tensor, Tensor]]) -> DynamicCache:
    cache = DynamicCache()
    for block, (keys_NHPW, values_NHPW) in enumerate(prefixes):
        cache.update(keys_NHPW, values_NHPW, block)
    return cache


def some_prefixes(backbone: Backbone, text: Text, length: int) -> list[tuple[Tensor, Tensor]]:
    shape = backbone.shape
    sizes = (len(text), shape.num_heads, length, shape.width // shape.num_heads)
    return [(noise(*sizes, seed=i), noise(*sizes, seed=i + 50)) for i in range(shape.num_blocks)]


def skip_without_prefixes(backbone: Backbone) -> None:
    if not backbone.shape.takes_prefixes:
        assert backbone.shape.family == "deberta"
        pytest.skip("DeBERTa takes neither cache nor prefix")


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.no_grad()
def test_prefixes_equal_hugging_faces_forward_with_a_filled_cache(
    backbone: Backbone, text: Text, attention: str
) -> None:
    skip_without_prefixes(backbone)
    backbone.model.set_attn_implementation(attention)
    prefixes = some_prefixes(backbone, text, 4)
    given = {i: lambda _, own=own: own for i, own in enumerate(prefixes)}
    walked = backbone.run(text, Edits(prefix=given))
    expected = backbone.model(
        input_ids=text.ids_NT,
        attention_mask=F.pad(text.mask_NT, (4, 0), value=1),
        position_ids=positions(backbone, text.mask_NT),
        past_key_values=filled(prefixes),
        **types(text),
    ).last_hidden_state
    assert torch.equal(walked, expected)
    assert effect_on(walked, backbone, text) > 0.1


@torch.no_grad()
def test_a_prefix_in_one_block_is_seen_there_and_in_no_other(
    backbone: Backbone, text: Text
) -> None:
    skip_without_prefixes(backbone)
    prefixes = some_prefixes(backbone, text, 4)
    walked = backbone.run(text, Edits(prefix={1: lambda _: prefixes[1]}))
    long = block_mask(backbone, F.pad(text.mask_NT, (4, 0), value=1))
    if long is not None:
        long = long[:, :, 4:]
    empty = [(keys[:, :, :0], values[:, :, :0]) for keys, values in prefixes[:1]]

    def with_cache(_: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        own = {"past_key_values": filled([*empty, prefixes[1]])}
        return (args[0], long, *args[2:]), kwargs | own

    hook = backbone.blocks[1].register_forward_pre_hook(with_cache, with_kwargs=True)
    expected = own_forward(backbone, text)
    hook.remove()
    assert torch.equal(at_tokens(walked, text), at_tokens(expected, text))
    everywhere = backbone.run(text, Edits(prefix={i: lambda _: prefixes[1] for i in range(3)}))
    assert (everywhere - walked).abs().max() > 0.1
    assert effect_on(walked, backbone, text) > 0.1


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("with_rows", [False, True])
@torch.no_grad()
def test_a_run_from_the_states_that_enter_a_block_is_the_full_run(
    backbone: Backbone, text: Text, block: int, with_rows: bool
) -> None:
    rows = {block: noise(len(text), 3, backbone.shape.width)} if with_rows else {}
    bias_NTD = noise(*text.ids_NT.shape, backbone.shape.width)
    edits = dataclasses.replace(giving(rows), hidden={block: lambda h, *_: h + bias_NTD})
    states = backbone.model(
        input_ids=text.ids_NT,
        attention_mask=text.mask_NT,
        **types(text),
        output_hidden_states=True,
    ).hidden_states
    full = backbone.run(text, edits)
    assert torch.equal(backbone.run(text, Edits(), stop=block), states[block])
    assert torch.equal(backbone.run(text, edits, start=block, states_NTD=states[block]), full)
    assert effect_on(full, backbone, text) > 0.1
    other = backbone.run(text, edits, start=block, states_NTD=states[block - 1])
    assert (at_tokens(other, text) - at_tokens(full, text)).abs().max() > 0.1


def num_hooks(backbone: Backbone) -> int:
    modules = backbone.model.modules()
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules)


def raising(*_: object) -> Any:
    raise RuntimeError("an edit failed")


FAILING = {
    "outputs": {(2, "ff_input"): raising},
    "inputs": {(2, "ff_input"): raising},
    "hidden": {2: raising},
    "rows": {2: raising},
}


@pytest.mark.parametrize("failing", FAILING)
@torch.no_grad()
def test_no_hook_outlives_a_pass_not_even_one_that_fails(backbone: Backbone, failing: str) -> None:
    text = some_text(backbone, lengths=(5, 12))
    plain = backbone.run(text, Edits())
    inside: list[int] = []

    def count(x: Tensor, y: Tensor, _: Text) -> Tensor:
        inside.append(num_hooks(backbone))
        return y + 1

    edits = Edits(outputs={(0, "value"): count})
    assert not torch.equal(backbone.run(text, edits), plain)
    assert inside == [1]
    assert num_hooks(backbone) == 0
    both = dataclasses.replace(edits, **{failing: {**getattr(edits, failing), **FAILING[failing]}})
    with pytest.raises(RuntimeError, match="an edit failed"):
        backbone.run(text, both)
    assert len(inside) == 2
    assert num_hooks(backbone) == 0
    assert torch.equal(backbone.run(text, Edits()), plain)
