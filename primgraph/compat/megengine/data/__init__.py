"""Data sets, samplers, transforms and loaders, as in MegEngine: batches are arrays of NumPy."""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.megengine.data import dataset, transform
from primgraph.compat.megengine.data.loader import Collator, DataLoader
from primgraph.compat.megengine.data.samplers import (
    Infinite,
    MapSampler,
    RandomSampler,
    ReplacementSampler,
    Sampler,
    SequentialSampler,
    StreamSampler,
)

__all__ = [
    "Collator",
    "DataLoader",
    "Infinite",
    "MapSampler",
    "RandomSampler",
    "ReplacementSampler",
    "Sampler",
    "SequentialSampler",
    "StreamSampler",
    "dataset",
    "transform",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
