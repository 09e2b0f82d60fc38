"""Derivatives by a complex step: the evaluator of the package, by the names that tests use."""

from primgraph.inspect.complex_step import (
    MARGIN,
    STEEPEST,
    STEP,
    apply,
    evaluate,
    wide_type,
    widened,
)

__all__ = ["MARGIN", "STEEPEST", "STEP", "apply", "evaluate", "wide_type", "widened"]
