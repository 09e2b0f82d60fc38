"""Loading of batches, as in MegEngine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from primgraph.compat.data.collation import Collation
from primgraph.compat.data.datasets import IterableDataset
from primgraph.compat.data.samplers import batches
from primgraph.compat.megengine.data.samplers import SequentialSampler, StreamSampler
from primgraph.compat.megengine.data.transform import Transform
from primgraph.errors import ArgumentError

_collation = Collation(np.ascontiguousarray)


class Collator:
    """Function that joins samples to arrays of NumPy.

    >>> megengine.data.Collator().apply([(1, 2.0), (3, 4.0)])
    [array([1, 3]), array([2., 4.])]
    """

    def apply(self, inputs: Sequence[Any]) -> Any:
        """Join samples: arrays along a new first axis, sequences and dicts item by item."""
        return _collation.collate(list(inputs))


class DataLoader:
    """Batches of the samples of a data set, transformed and joined to arrays of NumPy.

    Samples are loaded in this process, whatever `num_workers` is. `timeout`, `preload` and
    `parallel_stream` have no effect.

    >>> loader = megengine.data.DataLoader(megengine.data.dataset.ArrayDataset(np.arange(3)))
    >>> len(loader), next(iter(loader))
    (3, [array([0])])
    """

    def __init__(
        self,
        dataset: Any,
        sampler: Any = None,
        transform: Any = None,
        collator: Any = None,
        num_workers: int = 0,
        timeout: float = 0,
        preload: bool = False,
        parallel_stream: bool = False,
    ) -> None:
        if num_workers < 0 or timeout < 0:
            raise ArgumentError("num_workers and timeout are not negative")
        is_stream = isinstance(dataset, IterableDataset)
        if sampler is None:
            sampler = StreamSampler() if is_stream else SequentialSampler(dataset)
        if is_stream and not isinstance(sampler, StreamSampler):
            raise ArgumentError("a StreamDataset takes a StreamSampler")
        self.dataset, self.sampler, self.num_workers = dataset, sampler, num_workers
        self.transform = Transform() if transform is None else transform
        self.collator = Collator() if collator is None else collator

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            found = batches(self.dataset, self.sampler.batch_size, False)
        else:
            found = ([self.dataset[i] for i in places] for places in self.sampler)
        for samples in found:
            yield self.collator.apply(self.transform.apply_batch(samples))

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            raise ArgumentError("a stream has no length")
        return len(self.sampler)
