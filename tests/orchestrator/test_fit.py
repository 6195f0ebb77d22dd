"""Whether a method fits a backbone, from sizes alone: before a byte of it is there."""

from pathlib import Path

import pytest

from orchestrator.errors import Refused
from orchestrator.fit import parameters
from orchestrator.options import LaunchOptions
from orchestrator.plan import make_plan
from orchestrator.profiles import PROFILES

MINE = "method: {method}\nspace: {{learning_rate: 1.0e-3, {values}}}\ntraining: {{epochs: 2}}\n"


@pytest.mark.parametrize(
    ("method", "values", "backbone", "reason"),
    [
        (
            "prompt_tuning",
            "prompt_length: 505",
            "minilm",
            "PromptTuning: prompt_length must be at most 504 on this bert, got 505",
        ),
        (
            "lpt",
            "prompt_length: 10, bottleneck: 8, insertion_layer: 6",
            "minilm",
            "LPT: insertion_layer must be in [0, 5] on this bert, got 6",
        ),
        (
            "ptuning_v2",
            "prompt_length: 10",
            "deberta-xl",
            "takes extra keys and values, which deberta's does not",
        ),
        (
            "head_only",
            "precision: bf16",
            "deberta-xl",
            "training: precision must be fp32 on deberta, got bf16",
        ),
        ("lora", "rank: 0", "minilm", "LoRA: rank must be at least 1, got 0"),
    ],
)
@pytest.mark.parametrize("search", ["random", "tpe"])
def test_what_a_backbone_does_not_allow_is_refused_while_planning(
    tmp_path: Path, method: str, values: str, backbone: str, reason: str, search: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE.format(method=method, values=values))
    options = LaunchOptions(space=(str(file),), tasks=("sst2",), backbone=backbone, search=search)
    with pytest.raises(Refused) as caught:
        make_plan(options, PROFILES["demo"])
    assert str(caught.value).startswith("space mine@own")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_longest_prompt_that_leaves_a_text_its_tokens_is_taken() -> None:
    values = {"learning_rate": 1e-3, "prompt_length": 504}
    assert parameters("prompt_tuning", values, "roberta-base", 2)[0] == 504 * 768


def test_a_backbone_that_cannot_be_trained_counts_what_stays_at_its_words() -> None:
    values = {"learning_rate": 1e-3, "prompt_length": 10}
    assert parameters("prompt_tuning", values, "t5-base", 2) == (7_680, 0)
    with pytest.raises(Refused, match=r"AotFC reaches into the blocks, .* on t5 yet"):
        parameters("aot_fc", {"learning_rate": 1e-3, "rank": 8}, "t5-base", 2)
