"""Derivatives by a complex step: the evaluator of the package, by the names that tests use."""

from primgraph.codegen.ops.spelling.complex_step import MARGIN
from primgraph.inspect.complex_step import (
    STEEPEST,
    STEP,
    apply,
    evaluate,
    wide_type,
    widen_floats,
)

__all__ = ["MARGIN", "STEEPEST", "STEP", "apply", "evaluate", "wide_type", "widen_floats"]
