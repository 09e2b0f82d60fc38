"""Sampler of one of several processes."""

from primgraph.compat.data.samplers import DistributedSampler

__all__ = ["DistributedSampler"]
