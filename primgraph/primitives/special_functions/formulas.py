"""Graphs of special functions: scalar primitives, from which C is emitted, with their errors.

A function is written once, in `primgraph.approximations`, in ufuncs, `np.where` and `by_pieces`.
NumPy runs that text; here it is called on values that record a graph. Each function of one number
is a graph of its own, which others call by a `cond`: of one branch, or of two for `by_pieces`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from inspect import CO_VARARGS, isfunction
from types import CodeType, FunctionType
from typing import Any, final

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from primgraph.approximations import beta, error, gamma
from primgraph.base.records import dataclass
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Op, Primitive, recording
from primgraph.ir.types import FLOAT64, DType, TensorType
from primgraph.primitives import elementwise, logic
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.control import COUNT, cond
from primgraph.primitives.special_functions import gamma as g
from primgraph.primitives.special_functions import special as s


@final
@dataclass(frozen=True, slots=True)
class Formula:
    """A special function of floats: its name, the function in `approximations`, and its error.

    `ulp` bounds the error in float64, in units in the last place, where the function is well
    conditioned; None if it is that of a logarithm times an operand. A `single` one has a graph in
    float32, too; others compute float32 in float64. `params` are those of the primitive for which
    this is the function.
    """

    name: str
    function: Callable[..., Any]
    ulp: int | None
    single: bool = False
    params: tuple[tuple[str, Any], ...] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        return _operands(self.function)


FORMULAS: dict[Op, Formula] = {
    g.gammaln: Formula("gammaln", gamma.gammaln_chunk, 4),
    g.gamma_function: Formula("gamma", gamma.gamma_chunk, 8),
    g.polygamma: Formula("digamma", gamma.digamma_chunk, 4, params=(("n", 0),)),
    g.poch: Formula("poch", beta.poch_chunk, None),
    s.erfcx: Formula("erfcx", error.erfcx_value, 8, params=(("n", 0),)),
    s.erfinv: Formula("erfinv", error.erfinv_chunk, 4),
    s.erfcinv: Formula("erfcinv", error.erfcinv_chunk, 4),
    s.log_ndtr: Formula("log_ndtr", error.log_ndtr_chunk, 20),
    s.xlogy: Formula("xlogy", error.xlogy, 2, single=True),
    s.xlog1py: Formula("xlog1py", error.xlog1py, 2, single=True),
    s.logit: Formula("logit", error.logit_chunk, 3),
}

_BY_UFUNC = {
    op.impl: op
    for module in (elementwise, logic)
    for op in vars(module).values()
    if isinstance(op, Primitive) and isinstance(op.impl, np.ufunc)
} | {
    np.power: elementwise.power,
    np.bitwise_and: logic.logical_and,
    np.invert: logic.logical_not,
}


@final
class _Traced(NDArrayOperatorsMixin):
    """A scalar in a formula that is being recorded."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **params: Any) -> Any:
        type = next(x.value.type for x in given if isinstance(x, _Traced))
        return _Traced(_BY_UFUNC[ufunc](*[_value(x, type) for x in given]))

    def __array_function__(self, function: Any, types: Any, given: Any, params: Any) -> Any:
        assert function is np.where, function
        test, *sides = given
        type = next(
            (x.value.type for x in sides if isinstance(x, _Traced)), TensorType((), FLOAT64)
        )
        return _Traced(logic.select(test.value, *[_value(x, type) for x in sides]))

    def astype(self, dtype: Any) -> _Traced:
        return _Traced(elementwise.cast(self.value, dtype=np.dtype(dtype)))


def _value(given: Any, type: TensorType) -> Value:
    return given.value if isinstance(given, _Traced) else filled_constant(given, type)


def _record_piece(index: Value, xs: Sequence[_Traced], *names: str) -> _Traced:
    """Record the piece of that number."""
    branches = tuple([piece(name) for name in names])
    return _Traced(cond(index, *[x.value for x in xs], branches=branches)[0])


def _select_piece(first: _Traced, one: Any, other: Any, *xs: _Traced) -> _Traced:
    return _record_piece(first.value, xs, other.__name__, one.__name__)


def _call_by_name(function: Any) -> Any:
    """Return the function of a scalar that records a call of `function` by its name.

    A function with several results is recorded inline.
    """

    @wraps(function)
    def record_call(x: _Traced) -> Any:
        if len(piece(function.__name__).outputs) > 1:
            return function(x)
        return _record_piece(filled_constant(0, COUNT), [x], function.__name__)

    return record_call


def _operands(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments without default."""
    code: CodeType = function.__code__
    return code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]


# Functions of approximations with names of their own, of which `by_pieces` and calls record.
_SPACE: dict[str, Any] = {**vars(gamma), **vars(beta), **vars(error)}
_FUNCTIONS = {
    name: FunctionType(value.__code__, _SPACE, name, value.__defaults__)
    for name, value in _SPACE.items()
    if isfunction(value)
}
_SPACE |= _FUNCTIONS
_SPACE |= {
    name: _call_by_name(f)
    for name, f in _FUNCTIONS.items()
    if f.__code__.co_argcount == 1 and not f.__code__.co_flags & CO_VARARGS
}
_SPACE["by_pieces"] = _select_piece


@cache
def piece(name: str, dtype: DType = FLOAT64) -> Graph:
    """Return the graph of a function of `primgraph.approximations` on scalars.

    >>> from primgraph.ir.interpret import interpret
    >>> (value,) = interpret(piece("gammaln_far"), np.float64(9.0))
    >>> print(f"{value:.4f}")
    10.6046
    """
    function = _FUNCTIONS[name]
    builder = Builder(name)
    inputs = [builder.input(TensorType((), dtype), n) for n in _operands(function)]
    with recording(builder):
        found = function(*map(_Traced, inputs))
    results = found if isinstance(found, tuple) else (found,)
    return builder.graph([result.value for result in results])
