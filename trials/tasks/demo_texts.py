"""One maker per demo task: the texts of one example of a wanted class.

What decides a class is a combination wherever possible (negation with polarity, question word
with kind of answer, auxiliary with verb form), so that no single word gives it away.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

from trials.tasks.demo_words import BAD, FILM_PARTS, GOOD, VERBS, Verb, Words

Texts = tuple[str, ...]
Maker = Callable[[Random, Words, int], Texts]


def _scene(rng: Random, words: Words) -> tuple[str, Verb, str]:
    """Who did what to which thing."""
    return rng.choice(words.people), rng.choice(VERBS), rng.choice(words.things)


def _other(rng: Random, choices: Sequence[str], word: str) -> str:
    return rng.choice([choice for choice in choices if choice != word])


def _cola(rng: Random, words: Words, label: int) -> Texts:
    """0: the verb's form or the place of adjective, article or auxiliary is wrong."""
    person, verb, thing = _scene(rng, words)
    adjective = rng.choice(words.adjectives)
    auxiliary, form = rng.choice((("did", verb.base), ("had", verb.past)))
    what = f"the {adjective} {thing}"
    if label == 0:
        flaw = rng.choice(("form", "adjective", "auxiliary", "article"))
        if flaw == "form":
            form = verb.past if form == verb.base else verb.base
        elif flaw == "adjective":
            what = f"the {thing} {adjective}"
        elif flaw == "article":
            what = f"{adjective} the {thing}"
        else:
            auxiliary, form = form, auxiliary
    return (f"the {person} {auxiliary} {form} {what}",)


def _sst2(rng: Random, words: Words, label: int) -> Texts:
    """1: good and not negated, or bad and negated."""
    negated = rng.random() < 0.5
    link = rng.choice(
        ("was never", "is not", "is hardly") if negated else ("was", "is", "is truly")
    )
    verdict = rng.choice(GOOD if (label == 1) != negated else BAD)
    subject = f"{rng.choice(words.adjectives)} {rng.choice(FILM_PARTS)}"
    return (f"the {subject} {link} {verdict} {rng.choice(words.times)}",)


def _mrpc(rng: Random, words: Words, label: int) -> Texts:
    """1: other words, same meaning; 0: the opposite verb or another thing."""
    person, verb, thing = _scene(rng, words)
    time = rng.choice(words.times)
    action, other = verb.same, thing
    if label == 0 and rng.random() < 0.5:
        action = verb.opposite
    elif label == 0:
        other = _other(rng, words.things, thing)
    return (
        f"the {person} {verb.past} the {thing} {time}",
        f"{time} the {person} {action} the {other}",
    )


def _stsb(rng: Random, words: Words, label: int) -> Texts:
    """Level 0 to 4: how many of person, action, thing and place are the same."""
    slots = [words.people, [verb.past for verb in VERBS], words.things, words.places]
    first = [rng.choice(slot) for slot in slots]
    second = list(first)
    for i in rng.sample(range(len(slots)), len(slots) - label):
        second[i] = _other(rng, slots[i], first[i])
    return tuple(
        f"the {person} {action} the {thing} {place}"
        for person, action, thing, place in (first, second)
    )


def _qqp(rng: Random, words: Words, label: int) -> Texts:
    """1: the same question; 0: another intent, the opposite verb or another thing."""
    _, verb, thing = _scene(rng, words)
    first, second = rng.sample(("how can i", "how do i", "how could i"), 2)
    action, other = verb.same_base, thing
    if label == 0:
        change = rng.choice(("intent", "verb", "thing"))
        if change == "intent":
            second = rng.choice(("why should i", "when should i"))
        elif change == "verb":
            action = verb.opposite_base
        else:
            other = _other(rng, words.things, thing)
    return f"{first} {verb.base} the {thing}?", f"{second} {action} the {other}?"


def _mnli(rng: Random, words: Words, label: int) -> Texts:
    """0: same action, or opposite denied; 2: opposite, or same denied; 1: one detail more."""
    person, verb, thing = _scene(rng, words)
    denied = rng.random() < 0.3
    premise = f"the {person} {verb.past} the {thing} {rng.choice(words.places)}"
    if label == 1:
        return premise, f"the {person} {verb.same} the {rng.choice(words.adjectives)} {thing}"
    action = verb.same if (label == 0) != denied else verb.opposite
    return premise, f"the {person} {'never ' if denied else ''}{action} the {thing}"


def _qnli(rng: Random, words: Words, label: int) -> Texts:
    """0: the sentence answers; 1: it tells when, asked where, or is on another thing."""
    person, verb, thing = _scene(rng, words)
    word, answers = rng.choice((("where", words.places), ("when", words.times)))
    other = thing
    if label == 1 and rng.random() < 0.5:
        word, answers = "where", words.times
    elif label == 1:
        other = _other(rng, words.things, thing)
    question = f"{word} did the {person} {verb.base} the {thing}?"
    return question, f"the {person} {verb.past} the {other} {rng.choice(answers)}"


def _rte(rng: Random, words: Words, label: int) -> Texts:
    """0: told that it was done, and it is said to be; or told that it was not, and it is denied."""
    person, verb, thing = _scene(rng, words)
    denied = rng.random() < 0.3
    if (label == 0) != denied:
        told = rng.choice((f"managed to {verb.base}", f"gladly {verb.past}"))
    else:
        told = rng.choice((f"failed to {verb.base}", f"almost {verb.past}"))
    first = f"{rng.choice(words.times)} the {person} {told} the {thing}"
    return first, f"the {person} {'never ' if denied else ''}{verb.past} the {thing}"


MAKERS: Mapping[str, Maker] = {
    "cola": _cola,
    "sst2": _sst2,
    "mrpc": _mrpc,
    "stsb": _stsb,
    "qqp": _qqp,
    "mnli": _mnli,
    "qnli": _qnli,
    "rte": _rte,
}
