"""How many parameters the assignments of a study train."""

from dataclasses import dataclass

from orchestrator import catalogue, fit
from orchestrator.options import LaunchOptions
from orchestrator.plan import Study, assignment
from orchestrator.space_checks import probes
from searchspaces.space import Assignment


@dataclass(frozen=True)
class Counted:
    """One assignment with the parameters of its adapter."""

    k: int | None
    """Its number in the study; None where the searcher will choose the values."""
    values: Assignment
    adapter_parameters: int


def counted(study: Study, options: LaunchOptions) -> list[Counted]:
    """Every assignment of a study; under TPE both ends of every range in their place."""
    chosen: list[tuple[int | None, Assignment]]
    if options.search == "tpe":
        chosen = [(None, values) for values in probes(study.space)]
    else:
        chosen = [(k, assignment(study, options, k)) for k in range(study.num_trials)]
    fields = catalogue.method_info(study.space.method).hyperparameters.keys()
    rates = {"learning_rate", "network_learning_rate"}  # they differ in every draw, counts do not
    known: dict[tuple[object, ...], int] = {}
    rows = []
    for k, values in chosen:
        own = {key: value for key, value in values.items() if key in fields}
        key = tuple(sorted((name, value) for name, value in own.items() if name not in rates))
        if key not in known:
            known[key], _ = fit.parameters(study.space.method, own, study.backbone, 1)
        rows.append(Counted(k, values, known[key]))
    return rows


def head_parameters(study: Study) -> int:
    """Those of the head that every assignment of the study trains."""
    values = next(probes(study.space))
    fields = catalogue.method_info(study.space.method).hyperparameters
    own = {key: value for key, value in values.items() if key in fields}
    outputs = catalogue.num_outputs(study.task)
    return fit.parameters(study.space.method, own, study.backbone, outputs)[1]
