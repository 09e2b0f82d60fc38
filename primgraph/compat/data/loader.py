"""Loading of batches in this process, with torch's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from primgraph.compat.data.collation import Collation
from primgraph.compat.data.datasets import IterableDataset, is_tensor_dataset
from primgraph.compat.data.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    batches,
    count_batches,
)
from primgraph.errors import ArgumentError


class _InfiniteSampler:
    """Endless placeholders of positions, for iterable data sets."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Batches of the samples of a data set, collated to tensors.

    Samples are loaded in this process: any number of workers gives the batches that 0 workers give,
    `get_worker_info()` is None, and `worker_init_fn` is not called. `pin_memory`, `timeout`,
    `prefetch_factor`, `persistent_workers` and `multiprocessing_context` have no effect.

    >>> [batch.tolist() for batch in torch.utils.data.DataLoader(range(5), batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    collation: ClassVar[Collation]
    _fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset")
    _is_ready = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_options(num_workers, timeout, prefetch_factor, persistent_workers)
        is_stream = isinstance(dataset, IterableDataset)
        _check_samplers(is_stream, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        self.dataset, self.generator, self.num_workers = dataset, generator, num_workers
        self.pin_memory, self.timeout, self.worker_init_fn = pin_memory, timeout, worker_init_fn
        self.prefetch_factor, self.persistent_workers = prefetch_factor, persistent_workers
        self.multiprocessing_context = multiprocessing_context
        self.batch_size, self.drop_last = batch_size, drop_last
        if sampler is None:
            sampler = self._make_sampler(is_stream, bool(shuffle))
        self.sampler = sampler
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        default = self.collation.convert if batch_sampler is None else self.collation.collate
        self._takes_batches = collate_fn is None and batch_sampler is not None
        self.collate_fn = default if collate_fn is None else collate_fn
        self._is_ready = True

    def _make_sampler(self, is_stream: bool, shuffle: bool) -> Any:
        if is_stream:
            return _InfiniteSampler()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)
        return SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_ready and name in self._fixed:
            raise ArgumentError(
                f"{name} attribute should not be set after DataLoader is initialized"
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            count: int = len(self.dataset)  # type: ignore[arg-type]
            if self.batch_size is None:
                return count
            return count_batches(count, self.batch_size, self.drop_last)
        found: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(found)

    def __iter__(self) -> Iterator[Any]:
        return BatchIterator(self)

    def _samples(self) -> Iterator[Any]:
        """Yield what is to be collated, or whole batches of tensors."""
        data, collate = self.dataset, self.collate_fn
        if isinstance(data, IterableDataset):
            if self.batch_sampler is None:
                yield from map(collate, data)
            else:
                size = self.batch_size or 1
                yield from map(collate, batches(data, size, self.drop_last))
        elif self.batch_sampler is None:
            for i in self.sampler:
                yield collate(data[i])
        else:
            take = data.batch if self._takes_batches and is_tensor_dataset(data) else None
            several = getattr(data, "__getitems__", None)
            for places in self.batch_sampler:
                batch = take(places) if take is not None else None
                if batch is None:
                    found = [data[i] for i in places] if several is None else several(places)
                    batch = collate(found)
                yield batch


def _check_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    """Raise `ArgumentError` for options of workers that contradict each other."""
    for name, number in (("num_workers", num_workers), ("timeout", timeout)):
        if number < 0:
            raise ArgumentError(f"{name} option should be non-negative, not {number}")
    if num_workers == 0 and (prefetch_factor is not None or persistent_workers):
        raise ArgumentError("prefetch_factor and persistent_workers need num_workers > 0")


def _check_samplers(
    is_stream: bool,
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> None:
    """Raise `ArgumentError` for options of batches that contradict each other."""
    has_sampler = sampler is not None
    if is_stream and (shuffle or has_sampler or batch_sampler is not None):
        raise ArgumentError(
            "DataLoader with IterableDataset: expected unspecified shuffle, sampler and "
            "batch_sampler"
        )
    if has_sampler and shuffle:
        raise ArgumentError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or has_sampler or drop_last):
        raise ArgumentError(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
            "drop_last"
        )
    if batch_sampler is None and batch_size is None and drop_last:
        raise ArgumentError("batch_size=None option disables auto-batching: no drop_last")


class BatchIterator:
    """Iterator over the batches of a loader, which knows their number."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader, self._batches = loader, loader._samples()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._batches)

    def __len__(self) -> int:
        return len(self._loader)


def get_worker_info() -> None:
    """Return None: samples are loaded in the process of the loader.

    >>> torch.utils.data.get_worker_info() is None
    True
    """
