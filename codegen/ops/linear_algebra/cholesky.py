"""Cards of Cholesky factors, their tangents and their slopes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.linear_algebra import elimination
from primgraph.codegen.ops.linear_algebra.elimination import of_matrices
from primgraph.codegen.ops.linear_algebra.systems import (
    changing_card,
    helper_card,
    numpy_card,
)
from primgraph.codegen.ops.spelling.complex_step import ComplexStep
from primgraph.codegen.ops.spelling.notation import Target, reading
from primgraph.ir.primitive import Op
from primgraph.primitives.linear_algebra import cholesky as c

# Minimum number of rows for computing a factor in place.
_MANY_ROWS = 128


def _write_cholesky(to: Target) -> list[str]:
    (a,), rows = to.args, to.step.operands[0].shape[-1]
    if type(rows) is int and rows >= _MANY_ROWS:
        return [f"cholesky_in_blocks({a}, {to.out})"]
    return [f"{to.out}[...] = np.linalg.cholesky({a})"]


def _transposed(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _cholesky_by_parts(a: Any) -> Any:
    """Return the factor of the real part, plus its tangent along the imaginary part."""
    factor, d = np.linalg.cholesky(a.real), np.tril(a.imag)
    along = d + _transposed(np.tril(d, -1))
    return factor + 1j * c.cholesky_tangent.evaluate([factor, along], {})[0]


_CHOLESKY_STEP = ComplexStep(_cholesky_by_parts, partial=False, smooth=None)
# Both are of matrices that the step leaves symmetric.
_TANGENT_STEP, _SLOPE_STEP = (
    ComplexStep(partial(function, adjoint=_transposed), partial=False, smooth=None)
    for function in (c.factor_tangent, c.factor_slope)
)


CARDS: dict[Op, Card] = {
    c.cholesky: replace(
        numpy_card("cholesky", _CHOLESKY_STEP),
        write=_write_cholesky,
        in_place=(0,),
        scalar=of_matrices(elimination.cholesky),
    ),
    c.cholesky_tangent: helper_card("cholesky_tangent", _TANGENT_STEP),
    c.cholesky_slope: changing_card(
        reading("cholesky_slope({args})"), "cholesky_slope", _SLOPE_STEP
    ),
}
