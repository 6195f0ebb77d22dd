import csv
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.outcome import Outcome
from orchestrator.report.tables import (
    Row,
    StudySummary,
    to_csv,
    to_dicts,
    to_markdown,
    to_rich,
    to_rows,
)

SST2 = StudySummary(
    name="demo/aot_fc@demo-sst2",
    space="aot_fc@demo",
    task="sst2",
    backbone="minilm",
    metric="accuracy",
    maximize=True,
    majority=0.509,
    best_hyperparameters={"learning_rate": 0.005, "rank": 64, "targets": "query|value"},
    best_scores={0: 0.90, 1: 0.94, 2: 0.915},
    outcomes={Outcome.STOPPED: 7, Outcome.COMPLETED: 3, Outcome.LOST: 0, Outcome.RUNNING: 2},
    epochs=31,
    num_trials=12,
    note="generated data: scores say nothing about GLUE",
)
EMPTY = replace(
    SST2,
    name="demo/lora@demo-cola",
    task="cola",
    space="lora@demo",
    metric="matthews_correlation",
    majority=None,
    best_hyperparameters=None,
    best_scores={},
    outcomes={},
    epochs=0,
)


def printed(studies: list[StudySummary], width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(to_rich(to_rows(studies)))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_row_has_the_median_and_the_spread_of_the_best_assignment() -> None:
    (row,) = to_rows([SST2])
    assert row == Row(
        study="demo/aot_fc@demo-sst2",
        task="sst2",
        space="aot_fc@demo",
        backbone="minilm",
        metric="accuracy",
        maximize=True,
        score=0.915,
        std=pytest.approx(0.0202072594),
        num_seeds=3,
        majority=0.509,
        hyperparameters={"learning_rate": 0.005, "rank": 64, "targets": "query|value"},
        num_trials=12,
        outcomes={"running": 2, "completed": 3, "stopped_by_scheduler": 7},
        epochs=31,
        note="generated data: scores say nothing about GLUE",
    )


def test_one_seed_has_no_spread() -> None:
    (row,) = to_rows([replace(SST2, best_scores={5: 0.9})])
    assert (row.score, row.std, row.num_seeds) == (0.9, None, 1)


def test_a_study_without_scores_has_a_row_too() -> None:
    (row,) = to_rows([EMPTY])
    assert (row.score, row.std, row.hyperparameters, row.outcomes) == (None, None, {}, {})


def test_json_objects_keep_fractions() -> None:
    (first, second) = json.loads(json.dumps(to_dicts(to_rows([SST2, EMPTY]))))
    assert (first["score"], first["majority"], first["outcomes"]["completed"]) == (0.915, 0.509, 3)
    assert second["score"] is None


def test_markdown_shows_points() -> None:
    assert to_markdown(to_rows([SST2, EMPTY])) == (
        "| task | space | backbone | metric | score | std | majority | trials | epochs | outcomes "
        "| hyperparameters |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| sst2 | aot_fc@demo | minilm | accuracy | 91.5 | 2.0 | 50.9 | 10/12 | 31 "
        "| 2 running, 3 completed, 7 stopped by scheduler "
        "| learning_rate=0.005 rank=64 targets=query\\|value |\n"
        "| cola | lora@demo | minilm | matthews_correlation | - | - | - | 0/12 | 0 | none yet "
        "| no score yet |\n"
        "\ngenerated data: scores say nothing about GLUE\n"
    )


def test_csv_has_a_column_for_every_field() -> None:
    (first, second) = csv.DictReader(io.StringIO(to_csv(to_rows([SST2, EMPTY]))))
    assert list(first) == list(Row.__dataclass_fields__)
    assert (first["score"], second["score"]) == ("0.915", "")
    assert first["hyperparameters"] == "learning_rate=0.005 rank=64 targets=query|value"
    assert first["outcomes"] == "running=2 completed=3 stopped_by_scheduler=7"


def test_a_terminal_of_80_columns_shows_a_line_of_scores_and_the_details_below() -> None:
    lines = printed([SST2, EMPTY], 80)
    assert max(map(len, lines)) <= 80
    scores = [line.split() for line in lines]
    assert ["sst2", "aot_fc@demo", "accuracy", "91.5", "2.0", "50.9", "10/12", "31"] in scores
    empty = ["cola", "lora@demo", "matthews_correlation", "-", "-", "-", "0/12", "0"]
    assert empty in scores
    text = " ".join(" ".join(lines).split())
    assert "minilm; 2 running, 3 completed, 7 stopped by scheduler" in text
    assert "learning_rate=0.005 rank=64 targets=query|value" in text
    assert text.count("generated data: scores say nothing about GLUE") == 1


def test_a_minimised_metric_is_shown_as_it_is() -> None:
    loss = replace(SST2, metric="loss", maximize=False, best_scores={0: 0.51234}, majority=None)
    assert "| loss | 0.5123 | - | - |" in to_markdown(to_rows([loss]))


def test_brackets_in_values_are_no_markup() -> None:
    odd = replace(SST2, best_hyperparameters={"targets": "[red]query[/red]"})
    assert "targets=[red]query[/red]" in " ".join(printed([odd], 120))
