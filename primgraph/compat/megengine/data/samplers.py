"""Samplers of MegEngine, which yield batches of positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np

from primgraph.compat.data.samplers import batches, count_batches, require_batch_size
from primgraph.compat.randomness import SeedStreams, seeded
from primgraph.errors import ArgumentError, MissingMethodError


class Sampler:
    """Batches of positions: a subclass defines `__iter__`.

    >>> isinstance(megengine.data.RandomSampler(range(3)), megengine.data.Sampler)
    True
    """

    def __iter__(self) -> Iterator[Any]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__")


class MapSampler(Sampler):
    """Batches of positions of a data set: a subclass defines `sample`, which returns all of them.

    With several processes, `world_size`, each takes its part of each epoch.

    >>> isinstance(megengine.data.RandomSampler(range(3)), megengine.data.MapSampler)
    True
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int = 1,
        drop_last: bool = False,
        num_samples: int | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        require_batch_size(batch_size)
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ArgumentError(f"num_samples is a positive integer, not {num_samples!r:.60}")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.num_samples = len(dataset) if num_samples is None else num_samples
        self.world_size, self.rank, self.seed = world_size or 1, rank or 0, seed
        self._streams = seeded if seed is None else SeedStreams(seed)

    def sample(self) -> Sequence[int]:
        """Return the positions of an epoch."""
        raise MissingMethodError(f"{type(self).__name__} does not define sample")

    def __iter__(self) -> Iterator[list[int]]:
        found = self.sample()
        if self.world_size > 1:
            total = self._count() * self.world_size
            found = np.resize(np.asarray(found), total)[self.rank :: self.world_size].tolist()
        return batches(found, self.batch_size, self.drop_last)

    def _count(self) -> int:
        """Number of samples of this process."""
        return count_batches(self.num_samples, self.world_size, False)

    def __len__(self) -> int:
        return count_batches(self._count(), self.batch_size, self.drop_last)


class _IndexSampler(MapSampler):
    """Sampler of given positions, by default all."""

    def __init__(
        self,
        dataset: Sized,
        batch_size: int = 1,
        drop_last: bool = False,
        indices: Sequence[int] | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, None, world_size, rank, seed)
        self.indices = indices
        if indices is not None:
            self.num_samples = len(indices)

    def sample(self) -> Sequence[int]:
        """Return the positions in order."""
        return range(len(self.dataset)) if self.indices is None else self.indices


class SequentialSampler(_IndexSampler):
    """Batches of positions in order.

    >>> list(megengine.data.SequentialSampler(range(5), batch_size=2))
    [[0, 1], [2, 3], [4]]
    """


class RandomSampler(_IndexSampler):
    """Batches of positions in random order.

    >>> sampler = megengine.data.RandomSampler(range(5), batch_size=2, drop_last=True, seed=3)
    >>> len(sampler)
    2
    """

    def sample(self) -> Sequence[int]:
        """Return the positions in random order."""
        found: list[int] = self._streams.generator.permutation(super().sample()).tolist()
        return found


class ReplacementSampler(MapSampler):
    """Batches of random positions, with probabilities in proportion to weights.

    >>> sampler = megengine.data.ReplacementSampler(range(2), 2, weights=[0.0, 1.0])
    >>> list(sampler)
    [[1, 1]]
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int = 1,
        drop_last: bool = False,
        num_samples: int | None = None,
        weights: Sequence[float] | None = None,
        world_size: int | None = None,
        rank: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, num_samples, world_size, rank, seed)
        if weights is not None and len(weights) != len(dataset):
            raise ArgumentError(f"there are {len(dataset)} samples and {len(weights)} weights")
        self.weights = None if weights is None else np.asarray(weights, np.float64)

    def sample(self) -> Sequence[int]:
        """Return random positions."""
        share = None if self.weights is None else self.weights / self.weights.sum()
        generator = self._streams.generator
        found: list[int] = generator.choice(len(self.dataset), self.num_samples, p=share).tolist()
        return found


class StreamSampler(Sampler):
    """Number of samples of a stream in a batch.

    >>> megengine.data.StreamSampler(batch_size=2).batch_size
    2
    """

    def __init__(self, batch_size: int = 1) -> None:
        require_batch_size(batch_size)
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return iter(range(self.batch_size))


class Infinite(Sampler):
    """Endless repetition of a sampler.

    >>> sampler = megengine.data.Infinite(megengine.data.SequentialSampler(range(2)))
    >>> batches = iter(sampler)
    >>> [next(batches) for _ in range(3)]
    [[0], [1], [0]]
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from self.sampler

    def __len__(self) -> int:
        raise ArgumentError("an infinite sampler has no length")
