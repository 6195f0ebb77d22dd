import subprocess
import sys

import pytest

from trials.tasks.metrics import METRICS
from trials.tasks.table import GROUPS, TASKS


def test_glue_has_its_eight_tasks_in_the_usual_order() -> None:
    assert GROUPS == {"glue": ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte")}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_every_task_is_consistent(task) -> None:
    assert task.metric in METRICS
    assert len(task.fields) in (1, 2)
    assert (task.labels is None) == (task.label_range is not None)
    assert task.num_outputs == (1 if task.labels is None else len(task.labels))
    assert hash(task) == hash(task)


def test_the_table_and_the_metrics_bounds_need_no_heavy_import() -> None:
    code = (
        "import sys; import trials.tasks.table; import trials.tasks.metrics as m; "
        "assert m.METRICS['matthews'].worst == -1; "
        "heavy = {'torch', 'transformers', 'datasets', 'sklearn', 'scipy'} & set(sys.modules); "
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_needs_the_standard_library_only() -> None:
    code = "import sys; import trials.tasks.table; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
