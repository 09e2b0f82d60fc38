"""Data sets of MegEngine."""

from __future__ import annotations

from typing import Any

from primgraph.compat.data.datasets import ConcatDataset
from primgraph.compat.data.datasets import Dataset as _Dataset
from primgraph.compat.data.datasets import IterableDataset as _IterableDataset
from primgraph.errors import ArgumentError, MissingMethodError


class Dataset(_Dataset[Any]):
    """Samples by position: a subclass defines `__getitem__` and `__len__`.

    >>> isinstance(megengine.data.dataset.ArrayDataset([1, 2]), megengine.data.dataset.Dataset)
    True
    """

    def __len__(self) -> int:
        raise MissingMethodError(f"{type(self).__name__} does not define __len__")


MapDataset = Dataset


class StreamDataset(_IterableDataset[Any]):
    """Samples one after another: a subclass defines `__iter__`.

    >>> issubclass(megengine.data.dataset.StreamDataset, megengine.data.dataset.Dataset)
    False
    """


class ArrayDataset(Dataset):
    """Tuples of the items of several arrays of one length.

    Raises `ArgumentError` for different lengths, and without arrays.

    >>> d = megengine.data.dataset.ArrayDataset(np.arange(3), np.ones(3))
    >>> len(d), d[1][0]
    (3, np.int64(1))
    """

    def __init__(self, *arrays: Any) -> None:
        if not arrays:
            raise ArgumentError("ArrayDataset takes at least one array")
        if len({len(a) for a in arrays}) > 1:
            raise ArgumentError("lengths of input arrays are inconsistent")
        self.arrays = arrays

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(a[index] for a in self.arrays)

    def __len__(self) -> int:
        return len(self.arrays[0])


__all__ = ["ArrayDataset", "ConcatDataset", "Dataset", "MapDataset", "StreamDataset"]
