"""Samplers: positions of samples, or batches of them, in the order in which they are loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from primgraph.compat.data.datasets import permutation
from primgraph.compat.randomness import draw_categories, draw_integers, streams_of
from primgraph.eager.tensor import tensor
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import INT64

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Positions of samples: a subclass defines `__iter__`.

    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(Backwards())
    [2, 1, 0]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[Any]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__")


class SequentialSampler(Sampler[int]):
    """All positions in order.

    >>> list(torch.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Any

    def __init__(self, data_source: Sized) -> None:
        super().__init__(data_source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Positions in random order, or, with `replacement`, random positions.

    >>> sorted(torch.utils.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    data_source: Any

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(data_source)
        self.replacement, self.generator, self._count = replacement, generator, num_samples
        if not isinstance(replacement, bool):
            raise ArgumentError(
                f"replacement should be a boolean value, but got replacement={replacement!r:.60}"
            )
        if num_samples is not None and (not isinstance(num_samples, int) or num_samples <= 0):
            raise ArgumentError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={num_samples!r:.60}"
            )

    @property
    def num_samples(self) -> int:
        """Number of positions, by default that of the samples."""
        return len(self.data_source) if self._count is None else self._count

    def __iter__(self) -> Iterator[int]:
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            drawn = draw_integers(streams_of(self.generator), (count,), 0, n, INT64)
            yield from drawn.tolist()
            return
        while count > 0:
            yield from permutation(n, self.generator)[:count]
            count -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some positions in random order.

    >>> sorted(torch.utils.data.SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__()
        if len(indices) == 0:
            raise ArgumentError("SubsetRandomSampler takes at least one position")
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in permutation(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Random positions with probabilities in proportion to weights.

    Raises `ArgumentError` for other than one weight for each position.

    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        super().__init__()
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ArgumentError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={num_samples!r:.60}"
            )
        if not isinstance(replacement, bool):
            raise ArgumentError(
                f"replacement should be a boolean value, but got replacement={replacement!r:.60}"
            )
        self.weights = np.asarray(weights, np.float64)
        if self.weights.ndim != 1:
            raise ArgumentError(f"weights should have one axis, not {self.weights.ndim}")
        if not replacement and num_samples > np.count_nonzero(self.weights):
            raise ArgumentError("without replacement num_samples is at most the number of weights")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        streams, weights = streams_of(self.generator), tensor(self.weights)
        drawn = draw_categories(streams, weights, self.num_samples, self.replacement)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` positions that a sampler yields; the last may be shorter.

    >>> sampler = torch.utils.data.SequentialSampler("abc")
    >>> list(torch.utils.data.BatchSampler(sampler, 2, drop_last=False))
    [[0, 1], [2]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        super().__init__()
        require_batch_size(batch_size)
        if not isinstance(drop_last, bool):
            raise ArgumentError(
                f"drop_last should be a boolean value, but got drop_last={drop_last!r:.60}"
            )
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        return batches(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        sampler: Any = self.sampler
        return count_batches(len(sampler), self.batch_size, self.drop_last)


class DistributedSampler(Sampler[int]):
    """The positions of one of several processes, in an order that a seed and an epoch decide.

    Raises `ArgumentError` for a rank that there is not.

    >>> sampler = torch.utils.data.distributed.DistributedSampler(range(4), 2, 0, shuffle=False)
    >>> list(sampler)
    [0, 2]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        super().__init__()
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        self.num_replicas, self.rank, self.epoch = num_replicas or 1, rank or 0, 0
        if not 0 <= self.rank < self.num_replicas:
            raise ArgumentError(
                f"Invalid rank {rank}, rank should be in the interval [0, {self.num_replicas - 1}]"
            )
        self.num_samples = count_batches(len(dataset), self.num_replicas, drop_last)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = np.arange(len(self.dataset))
        if self.shuffle:
            order = np.random.default_rng(self.seed + self.epoch).permutation(order)
        order = np.resize(order, self.total_size)
        yield from order[self.rank :: self.num_replicas].tolist()

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch


def require_batch_size(batch_size: Any) -> None:
    """Raise `ArgumentError` unless `batch_size` is a positive integer."""
    is_integer = isinstance(batch_size, int) and not isinstance(batch_size, bool)
    if not is_integer or batch_size <= 0:
        raise ArgumentError(
            f"batch_size should be a positive integer value, but got batch_size={batch_size!r:.60}"
        )


def batches(sampler: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Yield lists of `size` items; the last may be shorter unless it is to be dropped."""
    found: list[Any] = []
    for i in sampler:
        found.append(i)
        if len(found) == size:
            yield found
            found = []
    if found and not drop_last:
        yield found


def count_batches(count: int, size: int, drop_last: bool) -> int:
    """Return the number of batches of `count` samples."""
    return count // size if drop_last else -(-count // size)
