import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.image
import pytest

from orchestrator.evp import Curve, Refusal, StudyRecord, TrialRecord, evp
from orchestrator.outcome import Outcome
from orchestrator.report.captions import split
from orchestrator.report.figures import Panel, draw
from orchestrator.report.incumbent import Evaluation, incumbent
from orchestrator.report.panels import CROWD, STYLES

TASKS = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte")


def panel(task: str, space: str = "aot_fc@demo", num_trials: int = 12, stopped: int = 7) -> Panel:
    scores = [0.6 + 0.3 * k / num_trials for k in range(num_trials)]
    study = StudyRecord(
        name=f"demo/{space}-{task}",
        metric="accuracy",
        maximize=True,
        worst=0.0,
        ceiling=1.0,
        searcher="random",
        scheduler="asha",
        num_trials=num_trials,
        num_seeds=1,
        note="demo profile, $generated$ tasks",
        trials=tuple(
            TrialRecord(
                assignment=k,
                outcome=Outcome.STOPPED if k < stopped else Outcome.COMPLETED,
                score=score,
            )
            for k, score in enumerate(scores)
        ),
    )
    return Panel(
        task=task,
        space=space,
        metric="accuracy",
        result=evp(study),
        incumbent_epochs=tuple(range(1, num_trials + 1)),
        incumbent_scores=tuple(scores),
    )


def refused(task: str, space: str = "aot_fc@demo") -> Panel:
    return Panel(
        task=task,
        space=space,
        metric="accuracy",
        result=Refusal(study=task, reason="none of the 12 trials has reported a score yet"),
        incumbent_epochs=(),
        incumbent_scores=(),
    )


def size(path: Path) -> tuple[int, int]:
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    height, width, _ = matplotlib.image.imread(path).shape
    return width, height


def drawn(panels: list[Panel], path: Path) -> Path:
    draw(panels, "demo-aot_fc · profile demo · backbone minilm", "generated tasks", path)
    return path


def words(path: Path) -> str:
    return " ".join("".join(ElementTree.parse(path).getroot().itertext()).split())


def test_eight_tasks_fill_a_picture_1600_pixels_wide(tmp_path: Path) -> None:
    width, height = size(drawn([panel(task) for task in TASKS], tmp_path / "sweep.png"))
    assert width == 1600
    assert 1300 < height < 1900


def test_every_space_of_a_picture_looks_different() -> None:
    assert len(set(STYLES)) == len(STYLES) > 24


def test_in_a_crowd_the_far_bounds_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    few, many = (
        drawn([panel("rte", f"space_{k}") for k in range(count)], tmp_path / f"{count}.svg")
        for count in (CROWD, CROWD + 1)
    )
    assert "up to the upper bound" in few.read_text()
    assert "upper bounds left out" in many.read_text()
    assert few.read_text().count('id="FillBetween') == CROWD
    assert many.read_text().count('id="FillBetween') == 0


def test_one_study_fills_the_width_too(tmp_path: Path) -> None:
    width, height = size(drawn([panel("sst2")], tmp_path / "sweep.png"))
    assert width == 1600
    assert 500 < height < 900


@pytest.mark.parametrize(
    "panels",
    [
        [panel("rte", stopped=0), panel("rte", "lora@demo", stopped=0)],
        [panel("rte", num_trials=100, stopped=0), panel("cola", num_trials=1, stopped=0)],
        [panel("rte", num_trials=1, stopped=1)],
        [refused("rte"), panel("sst2"), panel("cola"), refused("cola", "lora@demo")],
        [refused("rte"), refused("rte", "lora@demo")],
        [panel(task, f"space_{k}@demo") for k in range(9) for task in ("rte", "cola")],
    ],
)
def test_every_kind_of_sweep_is_drawn(panels: list[Panel], tmp_path: Path) -> None:
    assert size(drawn(panels, tmp_path / "sweep.png"))[0] == 1600


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_drawing_twice_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    first, second = (
        drawn([panel("rte"), refused("sst2")], tmp_path / f"{k}.{suffix}").read_bytes()
        for k in range(2)
    )
    assert first == second


def test_an_svg_holds_every_label_and_warning_in_full(tmp_path: Path) -> None:
    panels = [panel("rte"), panel("sst2", num_trials=9), refused("cola")]
    text = words(drawn(panels, tmp_path / "sweep.svg"))
    for shown in panels:
        if isinstance(shown.result, Curve):
            assert shown.result.label in text
            assert all(warning in text for warning in shown.result.warnings)
        else:
            assert shown.result.reason in text
    assert "generated tasks" in text


def test_the_page_shows_shared_clauses_once_and_the_others_under_their_task() -> None:
    shared, own = split([panel("rte"), panel("sst2", stopped=3), refused("cola")])
    assert "U-statistic; unit: assignments; N = 12" in shared
    assert own == [
        "7 stopped, 0 failed, 0 unknown",
        "3 stopped, 0 failed, 0 unknown",
        "no curve: none of the 12 trials has reported a score yet",
    ]


def test_a_picture_is_replaced_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "sweep.png"
    path.write_text("old")
    drawn([panel("rte")], path)
    assert size(path)[0] == 1600
    assert [entry.name for entry in tmp_path.iterdir()] == ["sweep.png"]


@pytest.mark.parametrize("name", ["sweep.jpgx", "sweep"])
def test_an_unknown_format_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="known: png, svg"):
        drawn([panel("rte")], tmp_path / name)


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no studies"):
        drawn([], tmp_path / "sweep.png")


def test_matplotlib_is_imported_only_to_draw_and_pyplot_never(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "import orchestrator.report.figures as figures, orchestrator.report.tables\n"
        "assert 'matplotlib' not in sys.modules\n"
        "from orchestrator.evp import Refusal\n"
        "panel = figures.Panel(task='t', space='s', metric='m', incumbent_epochs=(),\n"
        "    incumbent_scores=(), result=Refusal(study='s', reason='r'))\n"
        f"figures.draw([panel], 'title', 'note', pathlib.Path({str(tmp_path / 'a.png')!r}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_incumbent_counts_the_epochs_of_all_trials() -> None:
    reports = [(0, 1, 0.5), (1, 1, 0.4), (0, 2, 0.6), (1, 3, 0.55), (2, 1, 0.7)]
    points = [Evaluation(assignment=k, epoch=epoch, score=score) for k, epoch, score in reports]
    assert incumbent(points, maximize=True) == ((1, 2, 3, 5, 6), (0.5, 0.5, 0.6, 0.6, 0.7))
    assert incumbent(points, maximize=False)[1] == (0.5, 0.4, 0.4, 0.4, 0.4)
    assert incumbent([], maximize=True) == ((), ())
