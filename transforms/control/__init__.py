"""The rules of branches and loops, which are made by transforms of their bodies."""

from primgraph.transforms.control import (
    batching,
    forward,
    recomputing,
    separating,
    solution,
    turning,
)

__all__ = ["batching", "forward", "recomputing", "separating", "solution", "turning"]
