"""Cards of linear systems: NumPy's LAPACK functions, and helpers for what NumPy lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, array_card
from primgraph.codegen.ops.linear_algebra import elimination
from primgraph.codegen.ops.linear_algebra.elimination import of_matrices
from primgraph.codegen.ops.spelling.complex_step import ANALYTIC, ComplexStep
from primgraph.codegen.ops.spelling.notation import Read, Target, filling, reading
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import systems as p

# Nanoseconds for a call, and for an operation of LAPACK.
_CALL, _OPERATION = 5000.0, 0.1


def time_of_lapack(step: Step) -> float:
    """Return the cost of the primitive's FLOPs in LAPACK."""
    return _CALL + _OPERATION * step.op.flops(step.operands, step.params)


def function_card(read: Read, helper: str, step: ComplexStep | None) -> Card:
    """Return the card of a function that returns new arrays, and may raise."""

    made = array_card(read, filling(read), None, None, time_of_lapack, step)
    return replace(made, helper=helper, fallible=True, blas=True)


def changing_card(read: Read, helper: str, step: ComplexStep | None) -> Card:
    """Return the card of a helper that works in an array `out`, which may be its second operand."""

    def write(to: Target) -> list[str]:
        call = read([Text(a) for a in to.args], to.step).code
        return [f"{call[:-1]}, out={to.out})"]

    return replace(function_card(read, helper, step), write=write, in_place=(1,))


def numpy_card(name: str, step: ComplexStep | None) -> Card:
    """Return the card of a `numpy.linalg` function that takes only arrays."""
    return function_card(reading(f"np.linalg.{name}({{args}})"), "", step)


def helper_card(name: str, step: ComplexStep | None) -> Card:
    """Return the card of a support function that takes only arrays."""
    return function_card(reading(f"{name}({{args}})"), name, step)


def _cofactors_of_regular(a: Any) -> Any:
    return np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)


_COFACTORS_STEP = ComplexStep(_cofactors_of_regular, partial=False, smooth=None)


_read_triangular = reading(
    "triangular_solve({args}, lower={lower}, transposed={transposed}, unit={unit})"
)
_read_sparse_triangular = reading("sparse_triangular_solve({args}, reverse={reverse})")


CARDS: dict[Op, Card] = {
    p.solve: replace(
        numpy_card("solve", ANALYTIC),
        scalar=of_matrices(elimination.solve),
        advice="its matrix is singular, or nearly so",
    ),
    p.triangular_solve: replace(
        changing_card(_read_triangular, "triangular_solve", ANALYTIC),
        scalar=of_matrices(elimination.triangular_solve),
    ),
    p.sparse_triangular_solve: changing_card(
        _read_sparse_triangular, "sparse_triangular_solve", ANALYTIC
    ),
    p.inv: replace(numpy_card("inv", ANALYTIC), scalar=of_matrices(elimination.inverse)),
    p.slogdet: numpy_card("slogdet", None),
    p.det: numpy_card("det", ANALYTIC),
    p.cofactors: helper_card("cofactors", _COFACTORS_STEP),
}
