"""Data sets by position and by iteration, and what is made of them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np

from primgraph.compat.randomness import draw_permutation, streams_of
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, BoundsError, CheckError, MissingMethodError
from primgraph.ir.types import INT64

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Samples by position: a subclass defines `__getitem__`, and most define `__len__`.

    >>> class Squares(torch.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> len(Squares() + Squares())
    6
    """

    def __getitem__(self, index: Any) -> Any:
        raise MissingMethodError(f"{type(self).__name__} does not define __getitem__")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples one after another: a subclass defines `__iter__`.

    >>> class Stream(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Stream() + Stream())
    [0, 1, 2, 0, 1, 2]
    """

    def __iter__(self) -> Iterator[Any]:
        raise MissingMethodError(f"{type(self).__name__} does not define __iter__")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tuples of the slices of tensors along their first axes.

    Raises `CheckError`, an AssertionError, for tensors of different lengths.

    >>> d = torch.utils.data.TensorDataset(torch.arange(3), torch.zeros(3))
    >>> d[1]
    (tensor(1), tensor(0.))
    """

    tensors: Sequence[Any]

    def __init__(self, *tensors: Any) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            lengths = ", ".join(str(t.shape[0]) for t in tensors)
            raise CheckError(f"Size mismatch between tensors: of lengths {lengths}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def batch(self, indices: Sequence[int]) -> list[Any] | None:
        """Return what collating the samples gives; None for samples of a subclass."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return None
        places = np.asarray(indices, np.int64)
        return [_take(t, places) for t in self.tensors]


def _take(tensor: Any, places: np.ndarray[Any, Any]) -> Any:
    """Return slices along the first axis, without history if there is none."""
    if isinstance(tensor, _Tensor) and not tensor.requires_grad:
        return tensor.family(array_node(tensor._array().take(places, axis=0)))
    return tensor[places]


class StackDataset(Dataset[Any]):
    """Tuples of the samples of several data sets, or dicts by the names that they are given.

    >>> d = torch.utils.data.StackDataset(a=range(3), b="xyz")
    >>> d[1]
    {'a': 1, 'b': 'y'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset takes data sets, either by position or by name")
        self.datasets: Any = args or kwargs
        self._parts: dict[Any, Any] = {}
        self._parts.update(enumerate(args))
        self._parts.update(kwargs)
        if len({len(p) for p in self._parts.values()}) > 1:
            raise ArgumentError("Size mismatch between datasets")

    def __getitem__(self, index: Any) -> Any:
        found = {name: part[index] for name, part in self._parts.items()}
        return found if isinstance(self.datasets, dict) else tuple(found.values())

    def __len__(self) -> int:
        return len(next(iter(self._parts.values())))


class ConcatDataset(Dataset[Any]):
    """Data sets one after another.

    >>> d = torch.utils.data.ConcatDataset([range(3), range(2)])
    >>> len(d), d[4], d.cumulative_sizes
    (5, 1, [3, 5])
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise CheckError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise CheckError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(d) for d in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> Any:
        place = index + len(self) if index < 0 else index
        if place < 0:
            raise ArgumentError("absolute value of index should not exceed dataset length")
        k = bisect_right(self.cumulative_sizes, place)
        if k == len(self.datasets):
            raise BoundsError(f"there is no sample {index} of {len(self)}")
        return self.datasets[k][place - (self.cumulative_sizes[k - 1] if k else 0)]


class ChainDataset(IterableDataset[Any]):
    """Samples of iterable data sets one after another.

    >>> list(torch.utils.data.ChainDataset([range(2), range(1)]))
    [0, 1, 0]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[Any]):
    """Samples of a data set at some positions.

    >>> list(torch.utils.data.Subset(range(10, 20), [3, 1]))
    [13, 11]
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return several samples."""
        places = [self.indices[i] for i in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[i] for i in places] if several is None else several(places)

    def __len__(self) -> int:
        return len(self.indices)

    def batch(self, indices: Sequence[int]) -> list[Any] | None:
        """Return what collating the samples gives; None for samples that are not tensors."""
        batch = getattr(self.dataset, "batch", None)
        is_plain = type(self).__getitem__ is Subset.__getitem__ and is_tensor_dataset(self.dataset)
        return batch([self.indices[i] for i in indices]) if batch and is_plain else None


def is_tensor_dataset(dataset: Any) -> bool:
    """Return whether batches of a data set can be taken as a whole, by `dataset.batch`."""
    return isinstance(dataset, TensorDataset | Subset)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset]:
    """Divide a data set at random into parts of these lengths, or of these shares of it.

    Raises `ArgumentError` if they do not add up to the whole.

    >>> a, b = torch.utils.data.random_split(range(5), [0.6, 0.4])
    >>> len(a), len(b), sorted([*a, *b])
    (3, 2, [0, 1, 2, 3, 4])
    """
    total = len(dataset)
    counts = [int(n) for n in lengths]
    if math.isclose(sum(lengths), 1.0) and sum(lengths) <= 1.0 + 1e-9 and total != 1:
        counts = [math.floor(total * share) for share in lengths]
        for i in range(total - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != total:
        raise ArgumentError(
            f"Sum of input lengths does not equal the length of the input dataset: {sum(counts)} "
            f"and {total}"
        )
    order = permutation(total, generator)
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, counts, strict=True)]


def permutation(n: int, generator: Any) -> list[int]:
    """Return the integers below `n` in random order."""
    found: list[int] = draw_permutation(streams_of(generator), n, INT64).tolist()
    return found
