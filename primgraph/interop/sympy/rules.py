"""Rules of SymPy's classes: the operands of an expression, and its value from theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

# An array, or a number of Python.
Operand: TypeAlias = Any
# An expression of SymPy, which is not imported here.
Expr: TypeAlias = Any


def _arguments(expr: Expr) -> Sequence[Expr]:
    return tuple(expr.args)


def _always(expr: Expr) -> bool:
    return True


@final
@dataclass(frozen=True, slots=True)
class Rule:
    """Meaning of a class of SymPy.

    `build` computes the value of an expression from the values of its `operands`. It is called only
    where `supports` holds. An expression of numbers alone is evaluated by SymPy if it `folds`.
    """

    build: Callable[[Expr, Sequence[Operand]], Operand]
    operands: Callable[[Expr], Sequence[Expr]] = _arguments
    supports: Callable[[Expr], bool] = _always
    folds: bool = True


def function(compute: Callable[..., Operand], arity: int | None = None) -> Rule:
    """Return the rule of a function of its arguments, of `arity` arguments only."""
    supports = _always if arity is None else lambda expr: len(expr.args) == arity
    return Rule(lambda expr, values: compute(*values), supports=supports)


def is_number(value: Operand) -> bool:
    """Return whether an operand is a number of Python."""
    return isinstance(value, int | float | complex)


def number(expr: Expr) -> int | float | complex | None:
    """Return the number of Python nearest to a constant of SymPy, None where it is not evaluated.

    Integers that are not numbers of float64 are rounded, too.
    """
    if expr.is_Integer:
        return int(expr.p) if abs(expr.p) < 2**53 else float(expr.p)
    if expr.is_Rational:
        return int(expr.p) / int(expr.q)
    if expr.is_Number and expr.is_finite is not True:
        return float(str(expr).replace("oo", "inf"))
    # 40 digits of SymPy, then rounded: its own conversion truncates.
    parts = expr.evalf(40).as_real_imag()
    if not all(part.is_Number for part in parts):
        return None
    real, imag = (float(str(part)) for part in parts)
    return complex(real, imag) if imag else real
