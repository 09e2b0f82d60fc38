"""All derivative and batching rules of branches and loops, declared by import."""

from primgraph.transforms.loops import (
    batch_loops,
    implicit_solution,
    jvp_loops,
    partial_eval_loops,
    rematerialize,
    transpose_loops,
)

__all__ = [
    "batch_loops",
    "implicit_solution",
    "jvp_loops",
    "partial_eval_loops",
    "rematerialize",
    "transpose_loops",
]
