"""Collation of samples: arrays, numbers, texts, and sequences or dicts of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from primgraph import operators as pg
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, ShapeError


@final
class Collation:
    """Collation to the tensors of a system, which `convert` makes of arrays."""

    def __init__(self, convert: Callable[[np.ndarray[Any, Any]], Any]) -> None:
        self._convert = convert

    def collate(self, batch: Sequence[Any]) -> Any:
        """Join samples: arrays along a new first axis, sequences and dicts item by item.

        Texts stay lists. Raises `ArgumentError`, a TypeError, for other samples, and `ShapeError`
        for samples of different lengths.

        >>> torch.utils.data.default_collate([(1, torch.ones(1)), (2, torch.zeros(1))])
        [tensor([1, 2]), tensor([[1.],
                [0.]])]
        """
        first = batch[0]
        if isinstance(first, _Tensor):
            return pg.stack(list(batch))
        if isinstance(first, np.ndarray | np.generic) and first.dtype.kind not in "USO":
            return self._convert(np.stack([np.asarray(x) for x in batch]))
        if isinstance(first, float):
            return self._convert(np.array(batch, np.float64))
        if isinstance(first, int):
            return self._convert(np.array(batch))
        if isinstance(first, str | bytes):
            return list(batch)
        if isinstance(first, Mapping):
            found = {key: self.collate([sample[key] for sample in batch]) for key in first}
            return _like(first, found)
        if isinstance(first, Sequence):
            if any(len(sample) != len(first) for sample in batch):
                raise ShapeError("each element in list of batch should be of equal size")
            items = [self.collate(column) for column in zip(*batch, strict=True)]
            return type(first)(*items) if hasattr(first, "_fields") else items
        raise ArgumentError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
            f"found {type(first)}"
        )

    def convert(self, sample: Any) -> Any:
        """Convert the arrays in a sample to tensors.

        >>> torch.utils.data.default_convert([np.ones(1), 2])
        [tensor([1.], dtype=torch.float64), 2]
        """
        if isinstance(sample, np.ndarray | np.generic) and sample.dtype.kind not in "USO":
            return self._convert(np.asarray(sample))
        if isinstance(sample, Mapping):
            return _like(sample, {key: self.convert(x) for key, x in sample.items()})
        if isinstance(sample, tuple) and hasattr(sample, "_fields"):
            return type(sample)(*map(self.convert, sample))
        if isinstance(sample, list | tuple):
            return [self.convert(x) for x in sample]
        return sample


def _like(first: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    """Return `found` as a mapping of the class of `first`, if that takes it."""
    try:
        return type(first)(found)  # type: ignore[call-arg]
    except TypeError:
        return found
