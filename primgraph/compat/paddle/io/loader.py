"""Samplers and loaders of Paddle, on those of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any

import numpy as np

from primgraph.compat.data import loader as core
from primgraph.compat.data import samplers
from primgraph.compat.data.collation import Collation
from primgraph.compat.paddle.dynamic import as_tensor
from primgraph.errors import ArgumentError, CheckError

Sampler = samplers.Sampler
SequenceSampler = samplers.SequentialSampler
SubsetRandomSampler = samplers.SubsetRandomSampler


class RandomSampler(samplers.RandomSampler):
    """Positions in random order; a `generator` yields positions itself.

    >>> sorted(paddle.io.RandomSampler(range(3)))
    [0, 1, 2]
    """

    def __iter__(self) -> Iterator[int]:
        if self.generator is None:
            return super().__iter__()
        return islice(self.generator, self.num_samples)


class WeightedRandomSampler(samplers.WeightedRandomSampler):
    """Random positions with probabilities in proportion to weights.

    >>> list(paddle.io.WeightedRandomSampler([0.0, 1.0], 2))
    [1, 1]
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        super().__init__(weights, num_samples, replacement)


class BatchSampler(samplers.BatchSampler):
    """Lists of positions, of a data set or of a sampler.

    >>> list(paddle.io.BatchSampler(range(5), batch_size=2, drop_last=True))
    [[0, 1], [2, 3]]
    """

    def __init__(
        self,
        dataset: Sized | None = None,
        sampler: Iterable[int] | None = None,
        shuffle: bool = False,
        batch_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        if (dataset is None) == (sampler is None):
            raise CheckError("BatchSampler takes either a dataset or a sampler")
        if sampler is None:
            assert dataset is not None
            sampler = RandomSampler(dataset) if shuffle else SequenceSampler(dataset)
        elif shuffle:
            raise CheckError("shuffle should be False when sampler is set")
        _require(batch_size)
        super().__init__(sampler, batch_size, drop_last)


class DistributedBatchSampler(BatchSampler):
    """Batches of one of several processes, by default of one.

    >>> list(paddle.io.DistributedBatchSampler(range(4), 2, num_replicas=2, rank=1))
    [[2, 3]]
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = False,
        drop_last: bool = False,
    ) -> None:
        self.dataset, self.shuffle, self.epoch = dataset, shuffle, 0
        self.nranks, self.local_rank = num_replicas or 1, rank or 0
        self.num_samples = samplers.count_batches(len(dataset), self.nranks, False)
        self.total_size = self.num_samples * self.nranks
        super().__init__(
            sampler=range(self.num_samples), batch_size=batch_size, drop_last=drop_last
        )

    def __iter__(self) -> Iterator[list[int]]:
        order = np.resize(np.arange(len(self.dataset)), self.total_size)
        if self.shuffle:
            np.random.RandomState(self.epoch).shuffle(order)
            self.epoch += 1
        # Processes take whole batches in turns, and equal parts of what is left.
        rest = self.total_size % (self.batch_size * self.nranks)
        whole = order[: self.total_size - rest].reshape(-1, self.nranks, self.batch_size)
        last = order[self.total_size - rest :].reshape(self.nranks, -1)
        own = np.concatenate([whole[:, self.local_rank].ravel(), last[self.local_rank]])
        return samplers.batches(own.tolist(), self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch."""
        self.epoch = epoch


def _require(batch_size: Any) -> None:
    """Raise `CheckError`, an AssertionError, unless `batch_size` is a positive integer."""
    if not isinstance(batch_size, int) or batch_size <= 0:
        raise CheckError(f"batch_size should be a positive integer, but got {batch_size!r:.60}")


class DataLoader(core.DataLoader):
    """Batches of the samples of a data set, collated to tensors, as lists of their fields.

    Samples are loaded in this process: any number of workers gives the batches that 0 workers give.
    `places`, `use_shared_memory`, readers' buffers, `timeout`, `worker_init_fn` and
    `persistent_workers` have no effect. Raises `ArgumentError` for `feed_list` and for
    `return_list=False`, which are for static programs.

    >>> loader = paddle.io.DataLoader(paddle.io.TensorDataset([paddle.ones([3])]), batch_size=2)
    >>> len(loader)
    2
    """

    collation = Collation(as_tensor)

    def __init__(
        self,
        dataset: Any,
        feed_list: Sequence[Any] | None = None,
        places: Any = None,
        return_list: bool = True,
        batch_sampler: Any = None,
        batch_size: int | None = 1,
        shuffle: bool = False,
        drop_last: bool = False,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        use_buffer_reader: bool = True,
        reader_buffer_size: int = 2,
        prefetch_factor: int = 2,
        use_shared_memory: bool = True,
        timeout: int = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        persistent_workers: bool = False,
    ) -> None:
        if not return_list or feed_list is not None:
            raise ArgumentError(
                "DataLoader: feed_list and return_list=False are not supported, a loader yields "
                "lists of tensors",
                hint="exe.run(program, feed={'x': batch[0].numpy()}, ...) feeds them",
            )
        if batch_sampler is not None and (batch_size != 1 or shuffle or drop_last):
            raise CheckError("batch_size/shuffle/drop_last should not be set with batch_sampler")
        if batch_sampler is None and batch_size is not None:
            _require(batch_size)
        self.return_list, self.feed_list = return_list, feed_list
        super().__init__(
            dataset,
            batch_size,
            shuffle or None,
            batch_sampler=batch_sampler,
            collate_fn=collate_fn,
            drop_last=drop_last,
            num_workers=num_workers,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
        )

    def __call__(self) -> Iterator[Any]:
        return iter(self)

    def _samples(self) -> Iterator[Any]:
        return map(self._to_tensors, super()._samples())

    def _to_tensors(self, batch: Any) -> Any:
        """Convert the arrays that a function of the caller collates."""
        return self.collation.convert(batch)


__all__ = [
    "BatchSampler",
    "DataLoader",
    "DistributedBatchSampler",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]
