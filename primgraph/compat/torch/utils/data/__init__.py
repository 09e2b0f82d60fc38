"""Data sets, samplers and loaders, as in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.data.collation import Collation
from primgraph.compat.data.datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from primgraph.compat.data.loader import DataLoader as _DataLoader
from primgraph.compat.data.loader import get_worker_info
from primgraph.compat.data.samplers import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.utils.data import distributed

_collation = Collation(create.from_numpy)
default_collate, default_convert = _collation.collate, _collation.convert


class DataLoader(_DataLoader):
    __doc__ = _DataLoader.__doc__
    collation = _collation


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
