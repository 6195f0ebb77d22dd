"""How many parameters every method trains, adapter alone: the numbers of the papers."""

from typing import Any

import pytest

from orchestrator.fit import parameters
from trials.methods import METHODS

PROMPT_10 = {"prompt_length": 10}
MLP_400 = {"prompt_length": 10, "bottleneck": 400, "num_passes": 2}
PAPER_COUNT = {"prompt_length": 10, "insertion_layer": 6, "count_mode": "paper_count"}
LPT = {"prompt_length": 10, "bottleneck": 256, "insertion_layer": 6}

REPRODUCED: list[tuple[str, dict[str, Any], str, int]] = [
    ("fine_tuning", {}, "t5-base", 222_903_552),
    ("fine_tuning", {}, "t5-v1.1-small-lm", 76_961_152),
    ("fine_tuning", {}, "t5-v1.1-base-lm", 247_577_856),
    ("head_only", {}, "roberta-base", 0),
    ("prompt_tuning", PROMPT_10, "t5-small", 5_120),
    ("prompt_tuning", PROMPT_10, "t5-base", 7_680),
    ("prompt_tuning", PROMPT_10, "t5-large", 10_240),
    ("prompt_tuning", {"prompt_length": 100}, "t5-base", 76_800),
    ("prompt_tuning", {"prompt_length": 200}, "t5-base", 153_600),
    ("prompt_tuning", {"prompt_length": 100}, "t5-3b", 102_400),
    ("prompt_tuning", PROMPT_10, "codegen-350m", 10_240),
    ("prompt_tuning", PROMPT_10, "llama3-8b", 40_960),
    ("ptuning_v1", {"prompt_length": 100}, "roberta-large", 102_400),
    ("ptuning_v2", PROMPT_10, "roberta-base", 184_320),
    ("ptuning_v2", {"prompt_length": 100}, "roberta-large", 4_915_200),
    ("p_tuning_mlp", PROMPT_10, "t5-small", 793_088),
    ("p_tuning_mlp", PROMPT_10, "t5-base", 1_779_456),
    ("p_tuning_mlp", PROMPT_10, "t5-large", 3_159_040),
    ("p_tuning_lstm", PROMPT_10 | {"hidden_width": 384}, "t5-base", 8_279_040),
    ("resprompt", MLP_400, "t5-small", 416_656),
    ("resprompt", MLP_400, "t5-base", 624_784),
    ("resprompt", MLP_400, "t5-large", 832_912),
    ("resprompt", {"prompt_length": 10, "bottleneck": 128}, "t5-v1.1-base-lm", 206_720),
    ("ept", {}, "t5-small", 1_536),
    ("ept", {}, "t5-base", 2_304),
    ("ept", {}, "t5-large", 3_072),
    ("ept", {"num_passes": 2}, "t5-base", 2_304),
    ("ept", {"bottleneck": 1000}, "t5-base", 1_536_768),
    ("ept_star", {}, "t5-base", 2_304),
    ("aot_full", {}, "roberta-large", 1_235_312_640),
    ("aot_kron", {"rank": 20}, "roberta-large", 10_049_280),
    ("aot_fc", {"rank": 256}, "roberta-base", 4_730_880),
    ("aot_fc", {"rank": 256}, "roberta-large", 12_613_632),
    ("aot_fc", {"rank": 512}, "deberta-xl", 50_405_376),
    ("lora", {"rank": 16, "targets": "attention"}, "roberta-large", 3_145_728),
    ("adapters", {"bottleneck": 64}, "roberta-large", 6_343_680),
    ("bitfit", {}, "roberta-base", 102_144),
    ("bitfit", {}, "roberta-large", 271_360),
    ("bitfit", {}, "deberta-xl", 541_696),
    ("id_spam", PAPER_COUNT, "roberta-base", 2_064_384),
    ("id_spam", PAPER_COUNT, "roberta-large", 3_538_944),
    ("smop", {"num_prompts": 4, "prompt_length": 5}, "roberta-base", 18_432),
    ("lpt", LPT, "roberta-base", 2_162_688),
    ("lpt", LPT, "roberta-large", 2_883_584),
    *(
        ("dept", {"prompt_length": m, "rank": r, "offset_length": 256}, "t5-base", 76_800)
        for m, r in ((20, 60), (40, 45), (60, 30), (80, 15))
    ),
    ("dept", {"prompt_length": 60, "rank": 24, "offset_length": 512}, "t5-base", 76_800),
    ("dept", {"prompt_length": 120, "rank": 60, "offset_length": 256}, "t5-base", 153_600),
    ("dept", {"prompt_length": 60, "rank": 26, "offset_length": 512}, "t5-3b", 101_376),
    ("dept", {"prompt_length": 7, "rank": 3, "offset_length": 574}, "llama3-8b", 42_682),
    ("dept", {"prompt_length": 7, "rank": 2, "offset_length": 574}, "codegen-350m", 10_364),
    ("adept", {"prompt_length": 20, "bottleneck": 39}, "t5-base", 76_071),
    ("adept", {"prompt_length": 40, "bottleneck": 29}, "t5-base", 76_061),
    ("adept", {"prompt_length": 60, "bottleneck": 19}, "t5-base", 76_051),
    ("adept", {"prompt_length": 80, "bottleneck": 9}, "t5-base", 76_041),
    ("adept", {"prompt_length": 120, "bottleneck": 39}, "t5-base", 152_871),
    ("adept", {"prompt_length": 0, "bottleneck": 49}, "t5-base", 76_081),
    ("adept", {"prompt_length": 60, "bottleneck": 19}, "t5-3b", 101_395),
    ("adept", {"prompt_length": 7, "bottleneck": 1}, "codegen-350m", 10_241),
    ("adept", {"prompt_length": 7, "bottleneck": 1}, "llama3-8b", 40_961),
    ("superpos", PROMPT_10 | {"num_sampled_tokens": 128}, "t5-v1.1-base-lm", 984_320),
    ("superpos", PROMPT_10 | {"num_sampled_tokens": 128}, "t5-v1.1-small-lm", 656_640),
]
"""Method, hyperparameters, backbone, the count that follows from the paper's description."""

PRINTED_OTHERWISE: list[tuple[str, dict[str, Any], str, int, str]] = [
    (
        "p_tuning_mlp",
        PROMPT_10,
        "t5-base",
        1_779_456,
        "EPT prints 1.7M: truncated, not rounded",
    ),
    (
        "id_spam",
        {"prompt_length": 10, "bottleneck": 32, "insertion_layer": 6},
        "roberta-base",
        2_039_808,
        "printed 2,064,384: no bottleneck of the written form, 32 or another, gives it",
    ),
    (
        "lora",
        {"rank": 16, "targets": "all_linear"},
        "roberta-base",
        2_654_208,
        "ID-SPAM prints 3,495,312: with the language model's head and its tied decoder besides",
    ),
    (
        "ia3",
        {},
        "roberta-base",
        55_296,
        "Hugging Face's default targets make it 64,512: they catch the attention's output too",
    ),
    (
        "dept",
        {"prompt_length": 7, "rank": 3, "offset_length": 574},
        "codegen-350m",
        11_962,
        "ADePT prints 10.4K for rank 3, which is rank 2's",
    ),
]
"""The same with what a paper prints, where that does not follow from its description."""


def adapter_count(method: str, values: dict[str, Any], backbone: str) -> int:
    rates = {"learning_rate": 1e-3}
    if method in ("dept", "adept"):
        rates["network_learning_rate"] = 1e-4
    return parameters(method, rates | values, backbone, 2)[0]


@pytest.mark.parametrize(("method", "values", "backbone", "count"), REPRODUCED)
def test_the_count_is_the_papers(
    method: str, values: dict[str, Any], backbone: str, count: int
) -> None:
    assert adapter_count(method, values, backbone) == count


@pytest.mark.parametrize(("method", "values", "backbone", "count", "why"), PRINTED_OTHERWISE)
def test_a_count_that_a_paper_prints_otherwise_is_the_descriptions(
    method: str, values: dict[str, Any], backbone: str, count: int, why: str
) -> None:
    assert adapter_count(method, values, backbone) == count


def test_every_method_has_a_count() -> None:
    counted = {row[0] for row in (*REPRODUCED, *PRINTED_OTHERWISE)}
    assert METHODS.keys() - counted == {"adapterdrop"}  # the papers count it on T5 only


@pytest.mark.parametrize(
    ("backbone", "head"), [("roberta-base", 592_130), ("roberta-large", 1_051_650), ("t5-base", 0)]
)
def test_the_head_is_counted_apart(backbone: str, head: int) -> None:
    values = {"learning_rate": 1e-3, "prompt_length": 10}
    assert parameters("prompt_tuning", values, backbone, 2)[1] == head
