"""Rules of functions with derivatives of their own: custom_jvp, custom_vjp, custom_linear_solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from primgraph.api.derivatives.products import jvp, vjp
from primgraph.custom.decorators import CustomFunction, custom_jvp, custom_vjp
from primgraph.errors import UnsupportedError
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
        known[key] = _new_solver(at, jaxprs, lengths, count), jaxprs
    found: CustomFunction = known[key][0]
    return found


def _new_solver(at: Site, jaxprs: Any, lengths: Any, count: int) -> CustomFunction:
    ends = np.cumsum([0, *lengths]).tolist()

    def split(xs: Sequence[Variable]) -> tuple[list[list[Variable]], list[Variable]]:
        return [list(xs[a:b]) for a, b in pairwise(ends)], list(xs[ends[-1] :])

    def function(*xs: Variable) -> tuple[Variable, ...]:
        (_, _, consts, _), b = split(xs)
        return tuple(at.evaluator.run(jaxprs.solve, [*consts, *b]))

    def residual(x: Sequence[Variable], consts: Sequence[Variable]) -> tuple[Variable, ...]:
        return tuple(at.evaluator.run(jaxprs.matvec, [*consts, *x]))

    def tangents(primals: Sequence[Variable], given: Sequence[Variable | None]) -> Any:
        found = custom(*primals)
        x = found[:count]
        (consts, *others), b = split(primals)
        (changes, *_), db = split(given)
        right = [_zero_unless(d, v) for d, v in zip(db, b, strict=True)]
        if any(d is not None for d in changes):
            moved = _tangents_by(lambda *c: residual(x, c), consts, changes)
            right = [emit(e.sub, r, m) for r, m in zip(right, moved, strict=True)]
        dx = custom(*consts, *[v for part in others for v in part], *right)[:count]
        rest = [_zero(v) for v in found[count:]]
        return found, (*dx, *rest)

    def forward(*xs: Variable) -> tuple[Any, Any]:
        found = custom(*xs)
        return found, (xs, found[:count])

    def backward(kept: Any, cts: Sequence[Variable | None]) -> Any:
        if jaxprs.transpose_solve is None:
            raise UnsupportedError("from_jax: a linear solve without transpose_solve has no vjp")
        xs, x = kept
        parts, _ = split(xs)
        ct = [_zero_unless(d, v) for d, v in zip(cts[:count], x, strict=True)]
        turned = type(lengths)(lengths[1], lengths[0], lengths[3], lengths[2])
        order = [parts[1], parts[0], parts[3], parts[2]]
        flat = [*[v for part in order for v in part], *ct]
        slopes = _called(_solver(at, _transposed(jaxprs), turned, count), flat)[:count]
        to_consts: list[Variable | None] = [None] * len(parts[0])
        floats = [i for i, c in enumerate(parts[0]) if c.type.is_inexact]
        if floats:
            minus = [emit(e.neg, s) for s in slopes]
            to_consts = _cotangents_by(lambda *c: residual(x, c), parts[0], minus, floats)
        return (*to_consts, *[None] * (ends[-1] - len(parts[0])), *slopes)

    custom = custom_jvp(_named("linear_solve", function))
    custom.definition.skips_zeros = True
    custom.defjvp(tangents)
    custom.defvjp(forward, backward)
    return custom


def _named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    return function


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
