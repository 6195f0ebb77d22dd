"""Asynchronous successive halving, the stopping kind (Li et al. 2020), as Ray Tune decides it.

At the rung of grace * eta^i epochs a trial is stopped if its score so far lies strictly below the
(1 - 1/eta) quantile, linearly interpolated, of the scores recorded there before it. Equal scores
are told apart by validation loss; if that is equal too, the later arrival stops.

Higher is better here; the caller turns a minimised metric around.
"""

import bisect
import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Decision:
    """What happens to a trial at a rung, and why."""

    rung: int
    stop: bool
    threshold: float | None
    """The quantile that the score was compared with; None for the first arrival."""
    count: int
    """How many trials had been recorded at the rung."""


Key = tuple[float, float]
"""(score, minus validation loss): larger is better."""


def rungs(grace: int, eta: int, max_epochs: int) -> tuple[int, ...]:
    """The epoch budgets below `max_epochs` at which trials are compared.

    Raises:
        ValueError: if grace is less than 1 or eta less than 2.
    """
    if grace < 1:
        raise ValueError(f"grace must be at least 1 epoch, got {grace}")
    if eta < 2:
        raise ValueError(f"eta must be at least 2, got {eta}")
    budgets = []
    while grace < max_epochs:
        budgets.append(grace)
        grace *= eta
    return tuple(budgets)


@dataclass
class Asha:
    """The rungs of one study, filled in the order in which trials reach them."""

    budgets: tuple[int, ...]
    eta: int
    _keys: dict[int, list[Key]] = field(default_factory=dict)
    _decided: dict[tuple[int, int], Decision] = field(default_factory=dict)

    def judge(self, trial: int, epoch: int, key: Key) -> Decision | None:
        """The decision about a trial that reports `epoch`; None where there is no rung.

        A repeated report gets the decision that was recorded. A new one is not recorded yet: that
        waits until the caller has it on disk.
        """
        if epoch not in self.budgets:
            return None
        known = self._decided.get((trial, epoch))
        return known or decide(epoch, self._keys.get(epoch, []), key, self.eta)

    def record(self, trial: int, decision: Decision, key: Key) -> None:
        """Enter a decision that was made now or by an earlier process; once is enough."""
        if (trial, decision.rung) not in self._decided:
            bisect.insort(self._keys.setdefault(decision.rung, []), key)
            self._decided[trial, decision.rung] = decision

    def sizes(self) -> dict[int, int]:
        """How many trials each rung has recorded."""
        return {rung: len(self._keys.get(rung, ())) for rung in self.budgets}


def tie_key(score: float, loss: float | None) -> Key:
    """What trials are ordered by at a rung."""
    return (score, -math.inf if loss is None else -loss)


def decide(rung: int, keys: list[Key], key: Key, eta: int) -> Decision:
    """The decision about `key` given the sorted keys recorded before it."""
    if not keys:
        return Decision(rung, stop=False, threshold=None, count=0)
    position = (1 - 1 / eta) * (len(keys) - 1)
    low, high = keys[math.floor(position)], keys[math.ceil(position)]
    share = position - math.floor(position)
    threshold = _between(low[0], high[0], share)
    stop = key[0] < threshold
    if key[0] == threshold and low[0] == high[0]:
        stop = key[1] <= _between(low[1], high[1], share)
    return Decision(rung, stop=stop, threshold=threshold, count=len(keys))


def _between(low: float, high: float, share: float) -> float:
    # equal ends stay exact, where interpolating may round; a missing loss (-inf) would give NaN
    return low if low == high or math.isinf(low) else low + (high - low) * share
