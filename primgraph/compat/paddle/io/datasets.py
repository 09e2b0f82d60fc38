"""Data sets that Paddle has in a form of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.compat.data import datasets as core
from primgraph.errors import BoundsError, CheckError, MissingMethodError


class Dataset(core.Dataset[Any]):
    """Samples by position: a subclass defines `__getitem__` and `__len__`.

    >>> class Squares(paddle.io.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> Squares()[2]
    4
    """

    def __len__(self) -> int:
        raise MissingMethodError(f"{type(self).__name__} does not define __len__")


class IterableDataset(core.IterableDataset[Any]):
    """Samples one after another: a subclass defines `__iter__`.

    >>> class Stream(paddle.io.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Stream())
    [0, 1, 2]
    """


class TensorDataset(core.TensorDataset):
    """Tuples of the slices of a list of tensors along their first axes.

    >>> len(paddle.io.TensorDataset([paddle.zeros([3]), paddle.ones([3])]))
    3
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        super().__init__(*tensors)
        self.tensors = tensors


class ComposeDataset(core.Dataset[Any]):
    """Tuples of all fields of the samples of several data sets of one length.

    >>> d = paddle.io.TensorDataset([paddle.zeros([3])])
    >>> len(paddle.io.ComposeDataset([d, d])[0])
    2
    """

    def __init__(self, datasets: Sequence[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise CheckError("input datasets should not be empty")
        if len({len(d) for d in self.datasets}) > 1:
            raise CheckError("lengths of datasets should be same")

    def __len__(self) -> int:
        return len(self.datasets[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if not -len(self) <= index < len(self):
            raise BoundsError(f"there is no sample {index} of {len(self)}")
        found: list[Any] = []
        for dataset in self.datasets:
            sample = dataset[index]
            found += sample if isinstance(sample, list | tuple) else [sample]
        return tuple(found)
