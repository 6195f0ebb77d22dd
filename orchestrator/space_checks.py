"""Whether a search space fits its method and the training protocol, found before anything runs."""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from orchestrator import catalogue
from orchestrator.errors import Refused
from searchspaces.distributions import Choice, Distribution, Integer, Range, Scalar
from searchspaces.space import Assignment, Space
from trials.spec import TRAINING_FIELDS, Training

if TYPE_CHECKING:
    from trials.backbones.shape import Shape


BUDGET = ("epochs", "eval_every")
"""How long trials train: rungs and prices rest on it, so it is the same for a whole study."""


def check_space(space: Space) -> None:
    """Refuse a space with a key that is a field neither of its method nor of training."""
    for key in BUDGET:
        if key in space.keys:
            raise Refused(
                f"space {space.name}, key {key!r}: how long trials train is not searched, the best "
                f"epoch of each counts; give it under training"
            )
    fields = catalogue.method_info(space.method).hyperparameters
    for key in (*space.keys, *space.training):
        allowed = TRAINING_FIELDS if key in space.training else fields.keys() | TRAINING_FIELDS
        if key not in allowed:
            raise Refused(
                f"space {space.name}, key {key!r}: {space.method} has no such hyperparameter; "
                f"known: {', '.join(sorted(allowed))}"
            )
    for name, text in fields.items():
        if text == "required" and name not in space.keys:
            raise Refused(f"space {space.name}: {space.method} needs a value for {name!r}")


def make_training(space: Space, **changed: Scalar) -> Training:
    """The training protocol of a space, with some values changed.

    Raises:
        Refused: for a value that it would not take.
    """
    values = {**space.training, **changed}
    where = f"space {space.name}, training"
    _check_types(where, Training, values)
    try:
        return Training(**values)  # type: ignore[arg-type]  # the types are checked above
    except ValueError as error:
        raise Refused(f"{where}: {error}") from error


def check_assignment(space: Space, values: Assignment, shape: "Shape") -> None:
    """Refuse an assignment that the method, the protocol or a backbone so shaped would not take."""
    own = {key: value for key, value in values.items() if key not in TRAINING_FIELDS}
    protocol = {key: value for key, value in values.items() if key in TRAINING_FIELDS}
    method = catalogue.method_class(space.method)
    _check_types(f"space {space.name}", method, own)
    try:
        method(**own).check(shape)
    except ValueError as error:
        raise Refused(f"space {space.name}: {error}") from error
    training = make_training(space, **protocol)
    if training.precision == "bf16" and not shape.takes_bf16:
        raise Refused(
            f"space {space.name}, training: precision must be fp32 on {shape.family}, got bf16"
        )


def probes(space: Space) -> Iterator[Assignment]:
    """Few assignments that have among them every choice and both ends of every range."""
    axes: list[tuple[Assignment, ...]] = [
        tuple({key: value} for value in _ends(distribution))
        for key, distribution in space.free.items()
    ]
    axes += space.tied
    for number in range(max(map(len, axes), default=1)):
        cells = (axis[min(number, len(axis) - 1)] for axis in axes)
        yield {key: value for cell in cells for key, value in cell.items()}


def _ends(distribution: Distribution) -> tuple[Scalar, ...]:
    if isinstance(distribution, Choice):
        return distribution.values
    assert isinstance(distribution, Range | Integer)
    return (distribution.low, distribution.high)


def _check_types(where: str, record: Any, values: Mapping[str, Any]) -> None:
    """Refuse values that are no numbers, whole numbers and so on where the record wants them."""
    types = get_type_hints(record)
    for key, value in values.items():
        wanted = get_args(types[key]) or (types[key],)
        if not _fits(value, wanted):
            words = " or ".join(_WORDS[kind] for kind in wanted)
            raise Refused(f"{where}, key {key!r}: needs {words}, got {value!r}")


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def _fits(value: object, wanted: tuple[Any, ...]) -> bool:
    # texts are names of something, which the record itself knows
    known = [kind for kind in wanted if kind in _WORDS]
    return not known or type(value) in known or (float in known and type(value) is int)
