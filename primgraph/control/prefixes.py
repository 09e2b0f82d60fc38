"""Parallel prefix computation with an associative function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from primgraph import tree
from primgraph.api.world import is_array
from primgraph.control.bodies import require_equal
from primgraph.control.world import call_in_world, own
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.dims import Dim
from primgraph.ir.frontend.signature import call_user_function, check_arguments
from primgraph.ir.primitive import innermost
from primgraph.ir.types import as_axis
from primgraph.operators.handle import Handle
from primgraph.operators.shape.joining import concatenate, flip, stack
from primgraph.operators.shape.shaping import reshape


@check_arguments
def associative_scan(
    f: Callable[..., Any], xs: Any, *, reverse: bool = False, axis: int = 0
) -> Any:
    """Compute `f(... f(f(x[0], x[1]), x[2]) ..., x[k])` for all k along `axis`; `f` is associative.

    Result k is `f(... f(f(x[0], x[1]), x[2]) ..., x[k])`. `f(a, b)` takes and returns the
    containers of `xs` with any number of elements along `axis`, and combines them in pairs: the
    product of matrices is `lambda a, b: a @ b`. It is called twice for each halving of the size.
    `reverse` begins at the end.

    This is `jax.lax.associative_scan`, by G. E. Blelloch, Prefix sums and their applications, 1990:
    `f` is applied to less than 2 n pairs in 2 log n calls. Results are undefined if `f` is not
    associative.

    Raises `ShapeError` for different sizes and for symbolic ones, and `DTypeError` or `ShapeError`
    where `f` returns other types than it takes.

    >>> pg.associative_scan(lambda a, b: a * b, np.array([1.0, 2.0, 3.0, 4.0]))
    array([ 1.,  2.,  6., 24.])
    """
    if not callable(f):
        raise ArgumentError(f"associative_scan takes a function, not {f!r:.60}")
    build = partial(_scan_arrays, f, bool(reverse), axis)
    return call_in_world(build, build, (xs,))


def _scan_arrays(f: Callable[..., Any], reverse: bool, axis: int, xs: Any) -> Any:
    leaves, structure = tree.flatten(xs)
    given = [own(x) if innermost.get() is not None and is_array(x) else x for x in leaves]
    extents = set()
    for path, x in zip(tree.paths(xs, "xs"), given, strict=True):
        if not isinstance(x, Handle):
            raise ArgumentError(f"associative_scan: {path} is no array, but {x!r:.60}")
        extents.add(x.shape[as_axis(axis, x.ndim)])
    if not given:
        raise ArgumentError("associative_scan: there is nothing in xs to go along")
    if len(extents) > 1:
        listed = " and ".join(str(n) for n in sorted(extents, key=str))
        raise ShapeError(f"associative_scan: extents along axis {axis} differ: {listed}")
    if isinstance(next(iter(extents)), Dim):
        raise ShapeError(
            f"associative_scan: how often to halve {extents.pop()} elements is not known",
            hint="pg.scan goes along axes of any extent",
        )
    axes = [as_axis(axis, x.ndim) for x in given]

    def combine_leaves(a: list[Any], b: list[Any]) -> list[Any]:
        found = call_user_function(f, tree.unflatten(structure, a), tree.unflatten(structure, b))
        results, own_structure = tree.flatten(found)
        for x in results:
            if not isinstance(x, Handle):
                raise ArgumentError(f"associative_scan: f returned {x!r:.60}, not an array")
        wanted, given = [x.type for x in a], [x.type for x in results]
        require_equal(
            "associative_scan",
            "f",
            "its arguments are",
            (structure, wanted),
            (own_structure, given),
        )
        return results

    turned = [flip(x, axis=k) for x, k in zip(given, axes, strict=True)] if reverse else given
    found = _prefixes(combine_leaves, turned, axes)
    if reverse:
        found = [flip(x, axis=k) for x, k in zip(found, axes, strict=True)]
    return tree.unflatten(structure, found)


def _prefixes(
    f: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any], axes: list[int]
) -> list[Any]:
    """Compute prefixes: odd positions from half as many pairs, even positions from these."""
    count = xs[0].shape[axes[0]]
    if count < 2:
        return xs

    def part(values: list[Any], start: int | None, stop: int | None, step: int = 1) -> list[Any]:
        return [
            x[(*[slice(None)] * k, slice(start, stop, step))]
            for x, k in zip(values, axes, strict=True)
        ]

    odd = _prefixes(f, f(part(xs, 0, -1, 2), part(xs, 1, None, 2)), axes)
    if count == 2:
        even = part(xs, 0, 1)
    else:
        before = odd if count % 2 else part(odd, 0, -1)
        later = f(before, part(xs, 2, None, 2))
        first = part(xs, 0, 1)
        even = [concatenate([a, b], k) for a, b, k in zip(first, later, axes, strict=True)]
    return [_interleave(a, b, k) for a, b, k in zip(even, odd, axes, strict=True)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Interleave both along `axis`; `even` may have one more element."""
    count = odd.shape[axis]
    lead = (slice(None),) * axis
    pairs = stack([even[(*lead, slice(count))], odd], axis + 1)
    shape = (*odd.shape[:axis], 2 * count, *odd.shape[axis + 1 :])
    found = reshape(pairs, shape)
    if even.shape[axis] == count:
        return found
    return concatenate([found, even[(*lead, slice(count, None))]], axis)
