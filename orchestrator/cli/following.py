"""Running a launch in the terminal: a live table, or plain lines where there is no terminal."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rich.live import Live as Screen
from rich.table import Table

from orchestrator import launch as launching
from orchestrator.cli.app import line, out
from orchestrator.cli.find import find_sweep
from orchestrator.cli.status import studies_table
from orchestrator.home import Home, home
from orchestrator.options import LaunchOptions
from orchestrator.outcome import Outcome
from orchestrator.running import View, deliver, picture_path, unusable
from orchestrator.store.database import open_store

if TYPE_CHECKING:
    from orchestrator.core import Core
    from orchestrator.live import Live

REFRESH_SECONDS = 0.5


def run_launch(options: LaunchOptions) -> int:
    """Launch; 1 if a study has no usable trial or the sweep was interrupted."""
    place = home()
    with Terminal() as terminal:
        names = launching.launch(options, place, terminal.view)
    return _conclude(place, names)


def run_resume(wanted: str, overrides: dict[str, Any]) -> int:
    """Resume; a finished sweep only has its table printed."""
    place = home()
    with open_store(place.store_url, create=False) as store, store.read() as reader:
        sweep = find_sweep(reader, wanted)
        undelivered = reader.outbox_count(sweep.id)
    if sweep.state == "finished":
        if undelivered:
            deliver(place, sweep.id)
    else:
        with Terminal() as terminal:
            launching.resume(sweep, overrides, place, terminal.view)
    return _conclude(place, [sweep.id])


def _conclude(place: Home, names: list[str]) -> int:
    from orchestrator.report.tables import to_rich, to_rows
    from orchestrator.summaries import study_summary

    code = 0
    with open_store(place.store_url, create=False) as store:
        for name in names:
            with store.read() as reader:
                sweep = reader.sweep(name)
                studies = [study_summary(reader, study) for study in reader.studies(name)]
            assert sweep is not None
            out.print(to_rich(to_rows(studies)))
            for study in unusable(store, name):
                line(f"no usable trial in study {study}: see orchestrate show {study}")
                code = 1
            line(str(picture_path(place, name)))
            if sweep.state in ("interrupted", "stopped"):
                code = 1
    return code


class Terminal:
    """Shows a launch while it runs."""

    def __init__(self) -> None:
        self._screen: Screen | None = None
        self._shown_at = 0.0
        self._core: Core | None = None
        self._started = time.monotonic()
        self.view = View(say=self._say, following=self._follow, ended=self._ended)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _say(self, text: str) -> None:
        self._close()
        line(text)

    def _follow(self, core: "Core") -> Callable[[], None]:
        self._core = core
        if out.is_terminal:
            self._screen = Screen(self._table(), console=out, auto_refresh=False)
            self._screen.start()
        return self._tick

    def _tick(self) -> None:
        now = time.monotonic()
        if self._screen is not None and now - self._shown_at >= REFRESH_SECONDS:
            self._shown_at = now
            self._screen.update(self._table(), refresh=True)

    def _ended(self, trial: "Live", outcome: Outcome) -> None:
        if self._screen is None and self._core is not None:
            score = f"score {100 * trial.score:.1f}" if trial.best else "no score"
            done, total = _progress(self._core)
            line(f"[{done}/{total}] {trial.trial_id}: {outcome} after epoch {trial.epoch}, {score}")

    def _close(self) -> None:
        if self._screen is not None:
            self._screen.update(self._table(), refresh=True)
            self._screen.stop()
            self._screen = None

    def _table(self) -> Table:
        assert self._core is not None
        done, total = _progress(self._core)
        elapsed = time.monotonic() - self._started
        table = studies_table("waiting", "running", "stopped", "completed", "failed", "best")
        table.caption = f"{done} of {total} trials ended, {elapsed:.0f} s"
        table.caption_justify = "left"
        for study in self._core.studies:
            counts = study.outcomes
            table.add_row(
                study.row.id.partition("/")[2],
                str(counts[Outcome.PENDING]),
                str(counts[Outcome.RUNNING]),
                str(counts[Outcome.STOPPED]),
                str(sum(n for o, n in counts.items() if o.completed)),
                str(sum(n for o, n in counts.items() if o.failure or o == Outcome.LOST)),
                "" if study.best is None else f"{100 * study.best:.1f}",
            )
        return table


def _progress(core: "Core") -> tuple[int, int]:
    done = sum(n for s in core.studies for o, n in s.outcomes.items() if o.final)
    return done, sum(sum(s.outcomes.values()) for s in core.studies)
