"""Meanings of ONNX's operators, by topic."""

from primgraph.interop.onnx.operators import (
    control,
    elementwise,
    indexing,
    normalization,
    pools,
    recurrent,
    reductions,
    resampling,
    shapes,
    signals,
    sizes,
)

# Each module declares its functions in the table when it is imported.
__all__ = [
    "control",
    "elementwise",
    "indexing",
    "normalization",
    "pools",
    "recurrent",
    "reductions",
    "resampling",
    "shapes",
    "signals",
    "sizes",
]
