"""Rules of functions with derivatives of their own: custom_jvp, custom_vjp, custom_linear_solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.api.derivatives.products import jvp, vjp
from primgraph.base.providers import late
from primgraph.control.bodies import active_builder
from primgraph.custom.decorators import CustomFunction, custom_jvp, custom_vjp
from primgraph.errors import PrimgraphError, UnsupportedError
from primgraph.interop.jax.rules import (
    Site,
    constant,
    emit,
    full_like,
    rule,
)
from primgraph.ir.types import BOOL
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e

if TYPE_CHECKING:
    import jax
else:
    jax = late("jax")

# Rules within rules are recorded ahead up to this depth, and deeper ones when a derivative needs
# them.
_DEEPEST = 6


@rule("custom_jvp_call", keys=True)
def _custom_jvp_call(at: Site, *operands: Variable) -> Sequence[Variable]:
    closed, consts = at["call_jaxpr"], at["num_consts"]
    key = _key_of(at, closed)
    known = at.evaluator.active(key)
    if known is not None:
        return _called(known, operands)

    def function(*xs: Variable) -> tuple[Variable, ...]:
        return tuple(at.evaluator.run(closed, xs))

    def tangents(primals: Sequence[Variable], given: Sequence[Variable | None]) -> Any:
        with at.evaluator.entered(key, custom, _DEEPEST):
            skips = at["symbolic_zeros"]
            given = [
                _zero_tangent(x) if t is None and not skips else t
                for x, t in zip(primals[consts:], given[consts:], strict=True)
            ]
            zeros = [t is None for t in given]
            jaxpr, kept, out_zeros = at["jvp_jaxpr_fun"].call_wrapped(*zeros)
            nonzero = [t for t in given if t is not None]
            found = at.evaluator.evaluate(jaxpr, kept, [*primals[consts:], *nonzero])
        count = len(out_zeros)
        values, rest = found[:count], iter(found[count:])
        along = [
            _zero(v) if zero else next(rest) for v, zero in zip(values, out_zeros, strict=True)
        ]
        return tuple(values), tuple(along)

    custom = custom_jvp(_titled(function, at, closed))
    custom.definition.saved = {}
    custom.definition.skips_zeros = True
    custom.defjvp(tangents)
    return _called(custom, operands)


@rule("custom_vjp_call", "custom_vjp_call_jaxpr", keys=True)
def _custom_vjp_call(at: Site, *operands: Variable) -> Sequence[Variable]:
    closed, consts = at.params.get("call_jaxpr", at.params.get("fun_jaxpr")), at["num_consts"]
    key = _key_of(at, closed)
    known = at.evaluator.active(key)
    if known is not None:
        return _called(known, operands)
    avals = closed.in_avals[consts:]

    def function(*xs: Variable) -> tuple[Variable, ...]:
        return tuple(at.evaluator.run(closed, xs))

    def forward(*xs: Variable) -> tuple[Any, Any]:
        with at.evaluator.entered(key, custom, _DEEPEST):
            primals = xs[consts:]
            is_nonzero = [x.type.is_inexact for x in primals]
            jaxpr, kept = at["fwd_jaxpr_thunk"].call_wrapped(*is_nonzero)
            found = at.evaluator.evaluate(jaxpr, kept, primals)
            _, tree, *rest = at["out_trees"]()
            forwarded = rest[0] if rest else [None] * tree.num_leaves
            count = tree.num_leaves - sum(i is not None for i in forwarded)
            residuals = iter(found[:count])
            kept_all = [next(residuals) if i is None else primals[i] for i in forwarded]
        return tuple(found[count:]), kept_all

    def backward(residuals: Sequence[Variable], cts: Sequence[Variable | None]) -> Any:
        with at.evaluator.entered(key, custom, _DEEPEST):
            found = at.evaluator.cotangents(at["bwd"], residuals, cts, closed.out_avals, avals)
        return (*[None] * consts, *found)

    custom = custom_vjp(_titled(function, at, closed))
    custom.definition.saved = {}
    custom.defvjp(forward, backward)
    return _called(custom, operands)


def _called(custom: CustomFunction, operands: Sequence[Variable]) -> Sequence[Variable]:
    found: Sequence[Variable] = custom(*operands)
    return found


def _titled(function: Callable[..., Any], at: Site, closed: Any) -> Callable[..., Any]:
    """Name a function as in JAX."""
    info = getattr(closed.jaxpr, "debug_info", None)
    name = str(getattr(info, "func_name", at.name)).rpartition(".")[2]
    function.__name__ = function.__qualname__ = name if name.isidentifier() else "custom"
    return function


def _zero_tangent(x: Variable) -> Variable:
    """Return zeros for a rule: those of an array of integers are never used."""
    return full_like(x, 0) if x.type.is_inexact else constant(False, BOOL, x.shape)


def _zero(x: Variable) -> Variable | None:
    return full_like(x, 0) if x.type.is_inexact else None


def _key_of(at: Site, closed: Any) -> Any:
    """Return a key of the function, by which a rule finds the function that it belongs to."""
    return at.name, str(closed), tuple([np.asarray(c).tobytes() for c in closed.consts])


# Primitives of other packages: their derivatives are those that JAX finds by their rules.


def apply_foreign(at: Site, defined: Any, operands: Sequence[Variable]) -> Sequence[Variable]:
    """Record a primitive by the jaxpr that defines it, with the derivative of its own rules.

    These may have none by operands that are stopped before.
    """
    floats = [i for i, x in enumerate(operands) if x.type.is_inexact and not _is_stopped(x)]
    results = [i for i, t in enumerate(at.types) if t.is_inexact]

    def function(*xs: Variable) -> tuple[Variable, ...]:
        return tuple(at.evaluator.run(defined, xs))

    def expand(rule: Callable[..., Any], *xs: Any) -> list[Variable]:
        held = range(len(operands))
        given = [
            emit(e.stop_gradient, x) if i in held and i not in floats else x
            for i, x in enumerate(xs)
        ]
        with at.evaluator.entered(None, custom, 1):
            try:
                return at.evaluator.expand(rule, *given)
            except PrimgraphError:
                raise
            except Exception as error:
                raise UnsupportedError(f"from_jax: {at.name} has no derivative: {error}") from error

    def tangents(primals: Sequence[Variable], given: Sequence[Variable | None]) -> Any:
        places = [i for i in floats if given[i] is not None]

        def push(*xs: Any) -> Any:
            call, some = _of_some(at, xs[: len(primals)], places)
            values, along = jax.jvp(call, some, list(xs[len(primals) :]))
            return [*values, *[along[i] for i in results]]

        found = expand(push, *primals, *[given[i] for i in places])
        values, rest = found[: len(at.types)], iter(found[len(at.types) :])
        return tuple(values), tuple([next(rest) if v.type.is_inexact else None for v in values])

    def backward(xs: Sequence[Variable], cts: Sequence[Any]) -> Any:
        def pull(*given: Any) -> Any:
            call, some = _of_some(at, given[: len(xs)], floats)
            rest = iter(given[len(xs) :])
            values, pullback = jax.vjp(call, *some)
            return pullback([
                next(rest) if i in results else np.zeros(v.shape, jax.dtypes.float0)
                for i, v in enumerate(values)
            ])  # fmt: skip

        found = iter(expand(pull, *xs, *[cts[i] for i in results]))
        return [next(found) if i in floats else None for i in range(len(xs))]

    custom = custom_jvp(function)
    custom.definition.saved = {}
    custom.definition.skips_zeros = True
    custom.defjvp(tangents)
    custom.defvjp(lambda *xs: (custom(*xs), xs), backward)
    return _called(custom, operands)


def _is_stopped(x: Variable) -> bool:
    """Return whether a value is a constant, or that of `stop_gradient`."""
    eqn = active_builder().definition(x.value)
    return eqn is not None and (eqn.op is e.stop_gradient or not eqn.inputs)


def _of_some(at: Site, xs: Sequence[Any], places: Sequence[int]) -> tuple[Any, list[Any]]:
    """Return a primitive of JAX as a function of some operands, and these."""

    def call(*some: Any) -> Any:
        given = list(xs)
        for i, x in zip(places, some, strict=True):
            given[i] = x
        found = at.primitive.bind(*given, **at.params)
        return found if at.primitive.multiple_results else [found]

    return call, [xs[i] for i in places]


# Linear equations: the derivative is that of the solution, however it is found.


@rule("custom_linear_solve")
def _custom_linear_solve(at: Site, *operands: Variable) -> Sequence[Variable]:
    lengths = at["const_lengths"]
    count = len(operands) - sum(lengths)
    return _called(_solver(at, at["jaxprs"], lengths, count), operands)


def _solver(at: Site, jaxprs: Any, lengths: Any, count: int) -> CustomFunction:
    """Return the function of constants and `b` whose first `count` results `x` are those with
    `matvec(x) == b`.

    Its derivative follows from `matvec(dx) == db - dmatvec(x)`, and from the transpose of that.
    """
    known = at.evaluator.solvers
    key = tuple(map(id, jaxprs)), tuple(lengths)
    if key not in known:
        # The jaxprs are kept, so that their numbers stay theirs.
        known[key] = _Solver(at, jaxprs, lengths, count).custom, jaxprs
    found: CustomFunction = known[key][0]
    return found


@final
class _Solver:
    """Function of a linear solve, and its rules; `lengths` are the numbers of its constants."""

    def __init__(self, at: Site, jaxprs: Any, lengths: Any, count: int) -> None:
        self._at, self._jaxprs, self._lengths, self._count = at, jaxprs, lengths, count
        self._ends = np.cumsum([0, *lengths]).tolist()
        self.custom: CustomFunction = custom_jvp(self.linear_solve)
        self.custom.definition.saved = {}
        self.custom.definition.skips_zeros = True
        self.custom.defjvp(self._tangents)
        self.custom.defvjp(self._forward, self._backward)

    def _split(self, xs: Sequence[Any]) -> tuple[list[list[Any]], list[Any]]:
        ends = self._ends
        return [list(xs[a:b]) for a, b in pairwise(ends)], list(xs[ends[-1] :])

    def linear_solve(self, *xs: Variable) -> tuple[Variable, ...]:
        """Return `x`, and the further results of the solver, for constants and `b`."""
        (_, _, consts, _), b = self._split(xs)
        return tuple(self._at.evaluator.run(self._jaxprs.solve, [*consts, *b]))

    def _product(self, x: Sequence[Variable], *consts: Variable) -> tuple[Variable, ...]:
        return tuple(self._at.evaluator.run(self._jaxprs.matvec, [*consts, *x]))

    def _tangents(self, primals: Sequence[Variable], given: Sequence[Variable | None]) -> Any:
        found = self.custom(*primals)
        x = found[: self._count]
        (consts, *others), b = self._split(primals)
        (changes, *_), db = self._split(given)
        right = [_zero_unless(d, v) for d, v in zip(db, b, strict=True)]
        if any(d is not None for d in changes):
            moved = _tangents_by(partial(self._product, x), consts, changes)
            right = [emit(e.sub, r, m) for r, m in zip(right, moved, strict=True)]
        fixed = [*consts, *chain.from_iterable(others)]
        dx = self.custom(*fixed, *right)[: self._count]
        return found, (*dx, *(_zero(v) for v in found[self._count :]))

    def _forward(self, *xs: Variable) -> tuple[Any, Any]:
        found = self.custom(*xs)
        return found, (xs, found[: self._count])

    def _backward(self, kept: Any, cts: Sequence[Variable | None]) -> Any:
        if self._jaxprs.transpose_solve is None:
            raise UnsupportedError("from_jax: a linear solve without transpose_solve has no vjp")
        xs, x = kept
        (product, turned_product, solve, turned_solve), _ = self._split(xs)
        ct = [_zero_unless(d, v) for d, v in zip(cts, x, strict=False)]
        lengths = type(self._lengths)(*(self._lengths[i] for i in (1, 0, 3, 2)))
        turned = _solver(self._at, _transposed(self._jaxprs), lengths, self._count)
        given = [*turned_product, *product, *turned_solve, *solve, *ct]
        slopes = _called(turned, given)[: self._count]
        to_consts: list[Variable | None] = [None] * len(product)
        floats = [i for i, c in enumerate(product) if c.type.is_inexact]
        if floats:
            minus = [emit(e.neg, s) for s in slopes]
            to_consts = _cotangents_by(partial(self._product, x), product, minus, floats)
        return (*to_consts, *[None] * (self._ends[-1] - len(product)), *slopes)


def _transposed(jaxprs: Any) -> Any:
    return type(jaxprs)(jaxprs.vecmat, jaxprs.matvec, jaxprs.transpose_solve, jaxprs.solve)


def _zero_unless(d: Variable | None, like: Variable) -> Variable:
    return full_like(like, 0) if d is None else d


def _tangents_by(
    function: Callable[..., Any], xs: Sequence[Variable], ds: Sequence[Variable | None]
) -> Sequence[Variable]:
    """Return the tangents of `function(*xs)` for those of the arguments that have some."""
    places = [i for i, d in enumerate(ds) if d is not None]

    def of_some(*some: Variable) -> Any:
        given = list(xs)
        for i, x in zip(places, some, strict=True):
            given[i] = x
        return function(*given)

    found: Sequence[Variable] = jvp(
        of_some, tuple([xs[i] for i in places]), tuple([ds[i] for i in places])
    )[1]
    return found


def _cotangents_by(
    function: Callable[..., Any],
    xs: Sequence[Variable],
    cts: Sequence[Variable],
    places: Sequence[int],
) -> list[Variable | None]:
    """Return the cotangents of the arguments at `places`, and None for the others."""

    def of_some(*some: Variable) -> Any:
        given = list(xs)
        for i, x in zip(places, some, strict=True):
            given[i] = x
        return function(*given)

    _, slopes = vjp(of_some, tuple([xs[i] for i in places]), tuple(cts))
    found: list[Variable | None] = [None] * len(xs)
    for i, ct in zip(places, slopes, strict=True):
        found[i] = ct
    return found
