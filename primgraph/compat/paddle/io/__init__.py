"""Data sets, samplers and loaders, as in Paddle."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.data.datasets import ChainDataset, ConcatDataset, Subset, random_split
from primgraph.compat.data.loader import get_worker_info
from primgraph.compat.paddle.io.datasets import (
    ComposeDataset,
    Dataset,
    IterableDataset,
    TensorDataset,
)
from primgraph.compat.paddle.io.loader import (
    BatchSampler,
    DataLoader,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ComposeDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedBatchSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequenceSampler",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "get_worker_info",
    "random_split",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
