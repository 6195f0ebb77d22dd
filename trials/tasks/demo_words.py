"""The words of the demo tasks: common ones, each a single piece for BERT's tokenizer."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Verb:
    """An action done to a thing; its past is its participle too, and is not its base."""

    base: str
    past: str
    same_base: str
    """Of a verb that means the same."""
    same: str
    opposite_base: str
    """Of a verb that means the opposite."""
    opposite: str


@dataclass(frozen=True, kw_only=True)
class Words:
    """One set of content words."""

    people: tuple[str, ...]
    things: tuple[str, ...]
    places: tuple[str, ...]
    times: tuple[str, ...]
    adjectives: tuple[str, ...]


VERBS = tuple(
    Verb(
        base=base,
        past=past,
        same=same,
        same_base=same_base,
        opposite=opposite,
        opposite_base=opposite_base,
    )
    for base, past, same_base, same, opposite_base, opposite in (
        ("buy", "bought", "purchase", "purchased", "sell", "sold"),
        ("fix", "fixed", "repair", "repaired", "break", "broke"),
        ("close", "closed", "shut", "shut", "open", "opened"),
        ("lift", "lifted", "raise", "raised", "drop", "dropped"),
        ("build", "built", "construct", "constructed", "destroy", "destroyed"),
        ("love", "loved", "enjoy", "enjoyed", "hate", "hated"),
    )
)

MATCHED = Words(
    people=(
        "farmer",
        "teacher",
        "doctor",
        "painter",
        "sailor",
        "nurse",
        "pilot",
        "singer",
        "driver",
        "writer",
        "lawyer",
        "cook",
    ),
    things=(
        "boat",
        "clock",
        "house",
        "piano",
        "garden",
        "window",
        "bridge",
        "camera",
        "table",
        "engine",
        "tower",
        "shop",
    ),
    places=("at home", "in town", "in paris", "by the river", "near the station", "in the valley"),
    times=("on monday", "last week", "at noon", "in march", "before dawn", "in 1990"),
    adjectives=("old", "red", "small", "heavy", "new", "quiet", "tall", "cheap"),
)

MISMATCHED = Words(
    people=("monk", "queen", "soldier", "hunter", "banker", "priest", "student", "guard"),
    things=("sword", "ship", "temple", "mirror", "wagon", "castle", "lamp", "gate"),
    places=("in rome", "at sea", "in the desert", "near the border", "in the forest", "at court"),
    times=("on friday", "last year", "at night", "in june", "after dinner", "in 1850"),
    adjectives=("golden", "green", "broken", "huge", "ancient", "dark", "fine", "plain"),
)

GOOD = ("great", "lovely", "brilliant", "charming", "funny", "moving", "clever", "fresh")
BAD = ("awful", "boring", "stupid", "terrible", "weak", "dull", "ugly", "painful")
FILM_PARTS = ("story", "cast", "music", "script", "ending", "acting", "plot", "film")
