"""Complex-step derivatives: primitives on `a + ih b`, whose imaginary parts are derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# Minimum distance of a point from a kink or a jump.
MARGIN = 1e-3

# Bound of the error that the square of a small step leaves in a number that is zero.
_REST = 1e-50

Arrays: TypeAlias = Sequence["np.ndarray[Any, Any]"]
Function: TypeAlias = Callable[..., Any]
Smooth: TypeAlias = Callable[[Arrays, dict[str, Any]], bool]


class ComplexStep(NamedTuple):
    """How a primitive is evaluated on complex numbers.

    `function` is called if an operand is complex; None if the primitive itself supports complex
    numbers. If `partial`, it has complex values outside its real domain. `smooth` returns whether
    the primitive is differentiable at complex operands; without it, it is where its derivative is
    small.
    """

    function: Function | None
    partial: bool
    smooth: Smooth | None


ANALYTIC = ComplexStep(None, partial=False, smooth=None)
PARTIAL = ComplexStep(None, partial=True, smooth=None)


def as_on_reals(function: Function) -> Function:
    """Return a function of the real parts, whose derivative is zero."""
    return lambda *xs, **params: function(*map(real, xs), **params)


def real(x: Any) -> Any:
    """Return the real part without the residue of the step, so that zeros are recognised."""
    found = np.real(x)
    return np.where(np.abs(found) < _REST, 0.0, found) if np.iscomplexobj(x) else found


def smooth_away_from(distance: Callable[..., Any]) -> Smooth:
    """Return a predicate: smooth unless `distance(*inputs)` is near zero and varies.

    A tie of two numbers that vary together is not a kink.
    """

    def smooth(inputs: Arrays, params: dict[str, Any]) -> bool:
        found = distance(*inputs)
        return not np.any((np.abs(np.real(found)) < MARGIN) & (np.imag(found) != 0))

    return smooth


def smooth_everywhere(inputs: Arrays, params: dict[str, Any]) -> bool:
    """Return True: smooth for all operands."""
    return True


def distance_to_integer(x: Any) -> Any:
    """Return the distance of elements from integers."""
    return x - np.rint(x.real)
