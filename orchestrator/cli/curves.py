"""EVP curves as text, JSON and pictures."""

import dataclasses
from pathlib import Path
from typing import Any, Literal, cast

from rich import box
from rich.table import Table

from orchestrator.cli.app import line, out
from orchestrator.errors import Refused
from orchestrator.evp import Curve, Refusal, evp
from orchestrator.store.reading import Reader
from orchestrator.store.rows import StudyRow, SweepRow
from orchestrator.study_records import study_record

Estimator = Literal["U", "V"]
SHOWN = (1, 2, 3, 5, 8, 12, 20, 40, 80, 160)


def curves_json(reader: Reader, studies: list[StudyRow], estimator: str) -> list[dict[str, Any]]:
    """Curves and refusals under the names that scripts rely on."""
    return [dataclasses.asdict(_curve(reader, study, estimator)) for study in studies]


def print_curves(reader: Reader, studies: list[StudyRow], estimator: str) -> None:
    """For each study a row of values at a few n, and its label in words."""
    for study in studies:
        curve = _curve(reader, study, estimator)
        if isinstance(curve, Refusal):
            line(f"{study.id}: no curve: {curve.reason}")
            continue
        line(study.id)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("n", justify="right")
        rows = _rows(curve)
        for name in rows:
            table.add_column(name, justify="right")
        for index in _shown(curve):
            table.add_row(str(curve.n[index]), *(f"{100 * v[index]:.1f}" for v in rows.values()))
        out.print(table)
        line(curve.label)
        for warning in curve.warnings:
            line(f"note: {warning}")
        line("")


def write_picture(
    reader: Reader, sweep: SweepRow, studies: list[StudyRow], path: Path, estimator: str
) -> None:
    """Write the picture of these studies."""
    from orchestrator.summaries import draw_studies

    if path.suffix not in (".png", ".svg"):
        raise Refused(f"--output {path}: must end in .png or .svg")
    if not path.parent.is_dir():
        raise Refused(f"--output {path}: there is no folder {path.parent}")
    draw_studies(reader, sweep, studies, path, cast(Estimator, estimator))


def _curve(reader: Reader, study: StudyRow, estimator: str) -> Curve | Refusal:
    record = study_record(study, reader.trials(study.id))
    return evp(record, estimator=cast(Estimator, estimator))


def _rows(curve: Curve) -> dict[str, tuple[float, ...]]:
    columns = {"lower bound": curve.lo, "value": curve.value, "upper bound": curve.hi}
    return {name: values for name, values in columns.items() if values is not None}


def _shown(curve: Curve) -> list[int]:
    last = len(curve.n) - 1
    return [i for i, n in enumerate(curve.n) if n in SHOWN or i == last]
