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
