"""Data sets, samplers and loaders of OneFlow: those of torch, with tensors of OneFlow."""

# All that is imported is public.
# ruff: noqa: F401

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.data.collation import Collation
from primgraph.compat.data.loader import DataLoader as _DataLoader
from primgraph.compat.oneflow.tensor import create
from primgraph.compat.torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    distributed,
    get_worker_info,
    random_split,
)
from primgraph.compat.torch.utils.data import __all__ as __all__

_collation = Collation(create.from_numpy)
default_collate, default_convert = _collation.collate, _collation.convert


class DataLoader(_DataLoader):
    """Loader of batches of OneFlow's tensors; see `torch.utils.data.DataLoader`."""

    collation = _collation


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
