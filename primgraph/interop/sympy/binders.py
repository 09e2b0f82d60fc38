"""Expressions with a variable of their own: sums, products, functions of all elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from primgraph import operators as pg
from primgraph.api.vmap import vmap
from primgraph.control.loops import fori_loop
from primgraph.interop.sympy.matrices import as_array, constants
from primgraph.interop.sympy.rules import Expr, Operand, is_number

# Evaluates an expression, with values for some symbols.
Evaluate: TypeAlias = Callable[[Expr, Mapping[Expr, Operand]], Operand]


@final
@dataclass(frozen=True, slots=True)
class Binder:
    """Meaning of a class of SymPy that has variables of its own.

    `variables` and `parts` are those of an expression; `record` computes its value.
    """

    variables: Callable[[Expr], Sequence[Expr]]
    parts: Callable[[Expr], Sequence[Expr]]
    record: Callable[[Expr, Evaluate], Operand]
    supports: Callable[[Expr], bool]


def _has_finite_limits(expr: Expr) -> bool:
    finite = [bound.is_infinite is not True for limits in expr.limits for bound in limits[1:]]
    return all(finite) and len(finite) == 2 * len(expr.limits)


def _repeated(
    combine: Callable[[Any, Any], Any], start: float, collect: Callable[..., Any], inverse: Any
) -> Binder:
    """Return the meaning of a sum or product, with its first value `start`."""

    def record(expr: Expr, evaluate: Evaluate) -> Operand:
        return over(expr, list(expr.limits), {}, evaluate)

    def over(
        expr: Expr, limits: list[Expr], known: dict[Expr, Operand], evaluate: Evaluate
    ) -> Operand:
        """Repeat over the last of `limits`, the outermost, and over the others inside."""
        if not limits:
            return evaluate(expr.function, known)
        variable, *ends = limits[-1]
        lower, upper = (_whole(evaluate(end, known)) for end in ends)

        def step(place: Any) -> Any:
            value = pg.astype(place, constants.get())
            return as_array(over(expr, limits[:-1], {**known, variable: value}, evaluate))

        if _is_array(lower) or _is_array(upper):
            first = pg.asarray(start, dtype=constants.get())
            return fori_loop(lower, upper + 1, lambda i, value: combine(value, step(i)), first)
        if is_number(upper - lower) and upper < lower - 1:
            # Karr's convention, which is SymPy's: the range between the limits, taken away.
            return inverse(collect(vmap(step)(pg.arange(upper + 1, lower)), axis=0))
        return collect(vmap(step)(pg.arange(lower, upper + 1)), axis=0)

    return Binder(
        lambda expr: [limits[0] for limits in expr.limits],
        lambda expr: [expr.function, *[end for limits in expr.limits for end in limits[1:]]],
        record,
        _has_finite_limits,
    )


def _is_array(value: Operand) -> bool:
    return hasattr(value, "dtype")


def _whole(value: Operand) -> Operand:
    """Return a limit as an integer: a number, a size or an array."""
    if is_number(value):
        return int(value)
    return pg.astype(pg.floor(value), "int64") if _is_array(value) else value


def _apply_to_elements(expr: Expr, evaluate: Evaluate) -> Operand:
    function = expr.function
    return evaluate(function.expr, {function.variables[0]: evaluate(expr.expr, {})})


BINDERS = {
    "Sum": _repeated(operator.add, 0.0, pg.sum, operator.neg),
    "Product": _repeated(operator.mul, 1.0, pg.prod, lambda x: 1.0 / x),
    "ElementwiseApplyFunction": Binder(
        lambda expr: expr.function.variables,
        lambda expr: [expr.expr, expr.function.expr],
        _apply_to_elements,
        lambda expr: True,
    ),
}
