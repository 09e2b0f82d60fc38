"""Derivative and batching rules of branches and loops, built by transforming their bodies."""

from primgraph.transforms.control import (
    batching,
    forward,
    recomputing,
    separating,
    solution,
    turning,
)

__all__ = ["batching", "forward", "recomputing", "separating", "solution", "turning"]
