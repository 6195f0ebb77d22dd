"""A process that drives a sweep until it is done: `killable_driver.py URL SWEEP [REPORTS]`.

It kills itself, as the system would, about half a millisecond after so many reports: often in the
middle of a transaction.
"""

import os
import signal
import sys
import threading

from small_sweeps import evaluations, report

from orchestrator.core import Claim, Core
from orchestrator.store.database import open_store
from trials.spec import EvalPoint


def main(url: str, sweep: str, num_reports: int | None = None) -> None:
    death = threading.Timer(0.0005, os.kill, (os.getpid(), signal.SIGKILL))
    with open_store(url, create=False) as store:
        core = Core(store, sweep)
        rows = {state.row.id: state.row for state in core.studies}
        busy: list[tuple[Claim, list[EvalPoint]]] = []
        count = 0
        while core.work_left or busy:
            while len(busy) < 3 and (claimed := core.claim()):
                study_id, _, k = claimed.trial_id.rpartition("/")
                busy.append((claimed, evaluations(rows[study_id], int(k))))
            claimed, points = busy.pop(0)
            if not report(core, claimed, points.pop(0)):
                busy.append((claimed, points))
            count += 1
            if count == num_reports:
                death.start()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
