"""What a name on the command line stands for: a sweep, a study or a trial."""

from orchestrator.errors import Refused
from orchestrator.names import match
from orchestrator.store.reading import Reader
from orchestrator.store.rows import StudyRow, SweepRow, TrialRow


def find_sweep(reader: Reader, wanted: str | None) -> SweepRow:
    """The sweep of that name or unique beginning of one; without a name the newest.

    Raises:
        Refused: if there is none.
    """
    sweeps = reader.sweeps()
    if not sweeps:
        raise Refused("there is no sweep yet; begin one with: orchestrate launch")
    if wanted is None:
        return sweeps[-1]
    name = match(wanted, [sweep.id for sweep in sweeps], "sweep")
    return next(sweep for sweep in sweeps if sweep.id == name)


def find_any(reader: Reader, wanted: str) -> SweepRow | StudyRow | TrialRow:
    """The sweep `S`, study `S/STUDY` or trial `S/STUDY/K`; each part may be a unique beginning.

    Raises:
        Refused: if there is none.
    """
    first, _, rest = wanted.partition("/")
    sweep = find_sweep(reader, first)
    if not rest:
        return sweep
    label, _, number = rest.partition("/")
    studies = {study.id.partition("/")[2]: study for study in reader.studies(sweep.id)}
    study = studies[match(label, studies, f"study of {sweep.id}")]
    if not number:
        return study
    trial = reader.trial(f"{study.id}/{number}")
    if trial is None:
        raise Refused(
            f"no trial {number!r} in study {study.id}; it has 0 to {study.num_trials - 1}"
        )
    return trial


def find_studies(reader: Reader, wanted: str | None) -> tuple[SweepRow, list[StudyRow]]:
    """A sweep with its studies, or with the one study that was named."""
    if wanted is None or "/" not in wanted:
        sweep = find_sweep(reader, wanted)
        return sweep, reader.studies(sweep.id)
    found = find_any(reader, wanted)
    if not isinstance(found, StudyRow):
        raise Refused(f"{wanted!r} is a trial; give a sweep or a study of it")
    return find_sweep(reader, found.sweep_id), [found]
