"""Profiles: named sets of launch defaults."""

from dataclasses import dataclass
from typing import Literal

from orchestrator.errors import Refused


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What a launch does where nothing else is said; None leaves it to the search space."""

    name: str
    backbone: str
    source: Literal["demo", "hub"]
    trials: int
    seeds: int | None
    epochs: int | None
    section: str | None
    """The section of a space file that is preferred; None: the proposing paper's."""
    words: str


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="demo",
            backbone="minilm",
            source="demo",
            trials=12,
            seeds=1,
            epochs=4,
            section="demo",
            words="generated tasks that say nothing about GLUE itself",
        ),
        Profile(
            name="paper",
            backbone="roberta-base",
            source="hub",
            trials=40,
            seeds=None,
            epochs=None,
            section=None,
            words="the paper's protocol",
        ),
    )
}


def choose(
    wanted: str | None, from_environment: str | None, num_gpus: float
) -> tuple[Profile, str]:
    """The profile to use, and why.

    Raises:
        Refused: for a name that is no profile.
    """
    if wanted:
        return _find(wanted), "asked for"
    if from_environment:
        return _find(from_environment), "ORCHESTRATE_PROFILE"
    if num_gpus > 0:
        return PROFILES["paper"], "there is a GPU"
    return PROFILES["demo"], "there is no GPU"


def _find(name: str) -> Profile:
    if name not in PROFILES:
        raise Refused(f"no profile {name!r}; known: {', '.join(PROFILES)}")
    return PROFILES[name]
