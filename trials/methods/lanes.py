"""Lanes: the runs of a trial side by side, each with generators of its own.

Parameters have a leading axis S; the lanes' batches lie one behind the other on the batch axis,
N = S x b. What a lane draws depends on its seed alone, so that lane k equals the run alone.
"""

# S lanes, N = S x b rows, T tokens, I inputs, O outputs, X entries, D width

import hashlib
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def generator(seed: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator for one purpose of one run, independent of its others."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator(device).manual_seed(int.from_bytes(digest[:8], "big") >> 1)


class Lanes:
    """The lanes that are trained in one pass, in the order of their seeds."""

    def __init__(self, seeds: Sequence[int], device: torch.device) -> None:
        self.device = device
        self.seeds = list(seeds)
        self.order = [generator(seed, "order") for seed in seeds]
        self._initial = [generator(seed, "initial") for seed in seeds]
        noise_device = "cpu" if device.type == "meta" else device
        self._noise = [generator(seed, "noise", noise_device) for seed in seeds]

    def __len__(self) -> int:
        return len(self.seeds)

    def keep(self, lanes: Sequence[int]) -> None:
        """Forget every lane but these."""
        for name in ("seeds", "order", "_initial", "_noise"):
            setattr(self, name, [getattr(self, name)[lane] for lane in lanes])

    def normal(self, *shape: int, std: float) -> Tensor:
        """[S, *shape] normal numbers around 0."""
        return self._draw(shape, lambda out, source: out.normal_(0, std, generator=source))

    def uniform(self, *shape: int, bound: float) -> Tensor:
        """[S, *shape] uniform numbers in [-bound, bound]."""
        return self._draw(shape, lambda out, source: out.uniform_(-bound, bound, generator=source))

    def kaiming(self, *shape: int, inputs: int) -> Tensor:
        """[S, *shape] numbers as torch's own linear layer of so many inputs starts with."""
        return self.uniform(*shape, bound=1 / math.sqrt(inputs))

    def orthogonal(self, rows: int, columns: int) -> Tensor:
        """[S, rows, columns] orthonormal columns, or rows where those are fewer."""
        return self._draw(
            (rows, columns), lambda out, source: nn.init.orthogonal_(out, generator=source)
        )

    def choose(self, count: int, among: int) -> Tensor:
        """[S, count] different whole numbers below `among`."""
        if self.device.type == "meta":
            return torch.empty(len(self), count, dtype=torch.long, device="meta")
        drawn = [torch.randperm(among, generator=source)[:count] for source in self._initial]
        return torch.stack(drawn).to(self.device)

    def zeros(self, *shape: int) -> Tensor:
        """[S, *shape] zeros."""
        return torch.zeros(len(self), *shape, device=self.device)

    def dropout(self, x: Tensor, probability: float, lengths_N: Tensor | None = None) -> Tensor:
        """The rows x [N, ...], entries dropped at random and the others scaled up to keep the mean.

        Args:
            x: rows of all lanes.
            probability: of dropping an entry.
            lengths_N: tokens of each row, if x is [N, T, ...] and padded. A lane draws for its own
                longest row: how far the other lanes make it pad must not move its generator.
        """
        if probability == 0:
            return x
        kept = torch.ones_like(x).unflatten(0, (len(self), -1))
        for lane, source in enumerate(self._noise):
            drawn = kept[lane]
            if lengths_N is not None:
                drawn = drawn[:, : int(lengths_N.view(len(self), -1)[lane].max())]
            noise = torch.empty(drawn.shape, device=x.device)
            drawn.copy_(noise.bernoulli_(1 - probability, generator=source))
        return x * (kept / (1 - probability)).flatten(0, 1)

    def noise(self, x: Tensor) -> Tensor:
        """Standard normal numbers in the shape of x [N, ...], rows of all lanes."""
        drawn = torch.empty(x.shape, device=x.device).unflatten(0, (len(self), -1))
        for lane, source in zip(drawn, self._noise, strict=True):
            lane.normal_(generator=source)
        return drawn.flatten(0, 1)

    def _draw(
        self, shape: tuple[int, ...], fill: Callable[[Tensor, torch.Generator], Tensor]
    ) -> Tensor:
        if self.device.type == "meta":
            return torch.empty(len(self), *shape, device="meta")
        drawn = [fill(torch.empty(shape), source) for source in self._initial]
        return torch.stack(drawn).to(self.device)


def linear(x_NTI: Tensor, weight_SIO: Tensor, bias_SO: Tensor | None = None) -> Tensor:
    """Each lane's rows through its own linear map: [N, T, O]."""
    lanes = len(weight_SIO)
    x_SMI = x_NTI.reshape(lanes, -1, x_NTI.shape[-1])
    if bias_SO is None:
        y_SMO = torch.bmm(x_SMI, weight_SIO)
    else:
        y_SMO = torch.baddbmm(bias_SO.unsqueeze(1), x_SMI, weight_SIO)
    return y_SMO.view(*x_NTI.shape[:-1], -1)


def lookup(table_SXD: Tensor, ids_NT: Tensor) -> Tensor:
    """Rows of each lane's own table, for its rows of ids: [N, T, D]."""
    num_lanes, num_entries, _ = table_SXD.shape
    first_S = torch.arange(num_lanes, device=ids_NT.device) * num_entries
    ids_SM = ids_NT.reshape(num_lanes, -1) + first_S.unsqueeze(1)
    return F.embedding(ids_SM.view_as(ids_NT), table_SXD.flatten(0, 1))


def spread(x_S: Tensor, num_rows: int) -> Tensor:
    """Each lane's values for all of its rows: [S, ...] -> [N, ...]."""
    return x_S.repeat_interleave(num_rows // len(x_S), 0)
