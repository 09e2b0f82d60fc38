"""What primitives make of complex numbers `a + ih b`, whose imaginary parts are derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

# How far from a kink or a jump a point has to be.
MARGIN = 1e-3

# What the square of a small step may leave of a number that is zero without it.
_REST = 1e-50

Arrays: TypeAlias = Sequence["np.ndarray[Any, Any]"]
Function: TypeAlias = Callable[..., Any]
Smooth: TypeAlias = Callable[[Arrays, dict[str, Any]], bool]


class ComplexStep(NamedTuple):
    """How a primitive is evaluated on complex numbers.

    `function` is called where an operand is complex; None where the primitive's own meaning takes
    complex numbers. Where `partial`, that has values where there is none for real numbers.
    `smooth` tells whether the primitive is differentiable at complex operands; without it, it is
    where its slope is small.
    """

    function: Function | None
    partial: bool
    smooth: Smooth | None


ANALYTIC = ComplexStep(None, partial=False, smooth=None)
PARTIAL = ComplexStep(None, partial=True, smooth=None)


def as_on_reals(function: Function) -> Function:
    """A function of the real parts alone, whose derivative is zero."""
    return lambda *xs, **params: function(*map(real, xs), **params)


def real(x: Any) -> Any:
    """The real part, in which the step has left nothing: zero is told from other numbers."""
    found = np.real(x)
    return np.where(np.abs(found) < _REST, 0.0, found) if np.iscomplexobj(x) else found


def kinked(distance: Callable[..., Any]) -> Smooth:
    """Smooth but where `distance(*inputs)` is near zero, and moves.

    A tie of two numbers that move together is none.
    """

    def smooth(inputs: Arrays, params: dict[str, Any]) -> bool:
        found = distance(*inputs)
        return not np.any((np.abs(np.real(found)) < MARGIN) & (np.imag(found) != 0))

    return smooth


def everywhere(inputs: Arrays, params: dict[str, Any]) -> bool:
    """Smooth at all operands."""
    return True


def to_whole_number(x: Any) -> Any:
    """How far elements are from whole numbers."""
    return x - np.rint(x.real)
