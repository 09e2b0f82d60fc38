"""What holds for every random program with infinite slopes: all ways to one matrix agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from program_checks import check_kernel_of_slopes
from program_derivatives import demand
from program_draft import Choices
from program_singular import SingularProgram

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

# How often each of the more expensive checks is made.
_SECOND_ORDER = 0.3
_ELEMENTS = 0.25
_KERNEL = 0.25

# How many of the ways to a matrix are gone, beside that which evaluates all of it.
_WAYS = 2

_ROUNDING = 1e-9
_STEEP = 1e8


@dataclass(frozen=True, slots=True)
class Way:
    """What was asked for, and which part of the true matrix it is: that at `place`, or a sum."""

    name: str
    value: pg.Variable
    place: Any = ...
    summed: bool = False


# All ways of one kind: of the array, the vector that it is a function of, and its function.
Ways = Callable[[Choices, pg.Variable, pg.Variable, Any], list[Way]]


def check_singular(program: SingularProgram, seen: Counter[str] | None = None) -> None:
    """Jacobians and Hessians, in all ways to take them, are those of the elements alone."""
    seen = Counter() if seen is None else seen
    draw = program.draw(80)
    matrix = _check(program, "Jacobian", _slopes, _jacobians(draw), draw, seen)
    finite = np.isfinite(matrix)
    seen["singular: some slopes infinite, some finite"] += finite.any() and not finite.all()
    if draw.chance(_SECOND_ORDER):
        _check(program, "Hessian", _curvature, _hessians(draw), draw, seen)
    if draw.chance(_ELEMENTS):
        i, j = draw.below(matrix.shape[0]), draw.below(matrix.shape[1])
        truth = _slopes_of_element(i, j)
        _check(program, "slopes of an element", truth, _elements(i, j), draw, seen)


def _check(
    program: SingularProgram,
    what: str,
    truth: Callable[[np.ndarray, list[pg.Variable]], list[list[pg.Variable]]],
    ways: Ways,
    draw: Choices,
    seen: Counter[str],
) -> np.ndarray:
    """The true matrix, which what was found in all `ways` has been compared with."""
    x, n = program.feed, len(program.feed)
    exact = pg.trace(lambda *s: truth(program.elements(list(s)), list(s)), *[pg.spec(())] * n)
    rows = interpret(lower(exact), *x)
    matrix = np.reshape(rows, (-1, n))
    made: list[Way] = []

    def asked(x: pg.Variable) -> list[pg.Variable]:
        made.extend(ways(draw, program.array(x), x, program.array))
        return [way.value for way in made]

    graph = lower(pg.trace(asked, pg.spec(n)))
    found = interpret(graph, x)
    for way, array in zip(made, found, strict=True):
        with np.errstate(invalid="ignore"):
            wanted = np.trace(matrix) if way.summed else matrix[way.place]
        _demand_truth(f"{what}, {way.name}", array, wanted)
        seen[f"singular: {way.name}"] += 1
    if draw.chance(_KERNEL):
        check_kernel_of_slopes(f"a {what}", graph, [x], found, draw)
        seen["singular: kernels"] += 1
    return matrix


def _demand_truth(what: str, found: np.ndarray, wanted: np.ndarray) -> None:
    """Finite numbers are close to the true ones, and others stand where those do."""
    finite = np.isfinite(wanted)
    size = float(np.max(np.abs(wanted), initial=0, where=finite))
    apart = np.abs(np.where(finite, found, 0) - np.where(finite, wanted, 0))
    fine = (apart <= _ROUNDING * (1 + size)) & (np.isfinite(found) == finite)
    demand(size > _STEEP or np.all(fine), f"{what}:\n{found!r}, not\n{wanted!r}")


# The truth, by single numbers.


def _slopes(elements: np.ndarray, s: list[pg.Variable]) -> list[list[pg.Variable]]:
    return [pg.grad(e, s, materialize_grads=True) for e in elements]


def _weighted(elements: Any, count: int) -> Any:
    """All elements of a vector or a list, added up with different weights."""
    return sum((elements[i] * np.cos(i) for i in range(count)), start=pg.zeros(()))


def _curvature(elements: np.ndarray, s: list[pg.Variable]) -> list[list[pg.Variable]]:
    total = _weighted(elements, len(elements))
    return [
        pg.grad(d, s, materialize_grads=True) for d in pg.grad(total, s, materialize_grads=True)
    ]


def _slopes_of_element(i: int, j: int) -> Callable[..., list[list[pg.Variable]]]:
    def truth(elements: np.ndarray, s: list[pg.Variable]) -> list[list[pg.Variable]]:
        slope = pg.grad(elements[i], s, materialize_grads=True)[j]
        return [pg.grad(slope, s, materialize_grads=True)]

    return truth


# The ways.


def _jacobians(draw: Choices) -> Ways:
    kinds = (_rows, _columns, _parts, _some_elements, _gradients, _several, _trace)
    chosen = [kinds[i] for i in draw.order(len(kinds))[:_WAYS]]

    def ways(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
        found = [Way("jacobian", pg.jacobian(y, x))]
        for kind in chosen:
            found += kind(draw, y, x, function)
        return found

    return ways


def _either(draw: Choices, y: pg.Variable, function: Any) -> Any:
    """What a matrix is asked of: a function, or what it has built already."""
    return function if draw.chance(0.5) else y


def _rows(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    matrix = pg.Jacobian(_either(draw, y, function), x)
    return [Way("a row", matrix[i], i) for i in draw.subset(y.size, 1)]


def _columns(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    matrix = pg.Jacobian(_either(draw, y, function), x)
    return [Way("a column", matrix[:, j], (..., j)) for j in draw.subset(x.size, 1)]


def _parts(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    matrix = pg.Jacobian(_either(draw, y, function), x)
    rows, columns = slice(draw.below(y.size), None), slice(None, None, draw.choose((1, 2, -1)))
    return [Way("a block", matrix[rows, columns], (rows, columns)), Way("whole", matrix[:])]


def _some_elements(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    matrix = pg.Jacobian(_either(draw, y, function), x)
    places = [(draw.below(y.size), draw.below(x.size)) for _ in range(3)]
    return [Way("an element", matrix[p], p) for p in places]


def _gradients(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    slopes = {i: pg.grad(y[i], x, materialize_grads=True) for i in draw.subset(y.size, 1)}
    return [Way("gradient of an element", d, i) for i, d in slopes.items()]


def _several(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    k = draw.below(y.size)
    matrix = pg.Jacobian((y[:k], y[k:]), x)
    return [Way("of several outputs", matrix.whole()), Way("of the second", matrix.blocks[1][0][:],
                                                           slice(k, None))]  # fmt: skip


def _trace(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
    if y.shape != x.shape:
        return []
    return [Way("divergence", pg.divergence(y, x), summed=True)]


def _hessians(draw: Choices) -> Ways:
    def total(y: pg.Variable) -> pg.Variable:
        weights = np.cos(np.arange(y.size))
        result: pg.Variable = pg.sum(y * weights)
        return result

    def ways(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
        z = total(y)
        matrix = pg.Hessian((lambda x: total(function(x))) if draw.chance(0.5) else z, x)
        i, j = draw.below(x.size), draw.below(x.size)
        every = np.arange(x.size)
        slope = pg.grad(z, x, materialize_grads=True)
        return [
            Way("hessian", pg.hessian(z, x)),
            Way("a row", matrix[i], i),
            Way("an element", matrix[i, j], (i, j)),
            Way("hessian_diagonal", pg.hessian_diagonal(z, x), (every, every)),
            Way("laplacian", pg.laplacian(z, x), summed=True),
            Way("divergence", pg.divergence(slope, x), summed=True),
            Way("jacobian of a gradient", pg.jacobian(slope, x)),
        ]

    return ways


def _elements(i: int, j: int) -> Ways:
    def ways(draw: Choices, y: pg.Variable, x: pg.Variable, function: Any) -> list[Way]:
        whole, matrix = pg.jacobian(y, x), pg.Jacobian(_either(draw, y, function), x)
        taken = {
            "of the whole": whole[i, j],
            "by itself": matrix[i, j],
            "of a row": pg.Jacobian(y, x)[i][j],
            "of a column": pg.Jacobian(y, x)[:, j][i],
        }
        return [
            Way(f"element {name}", pg.grad(v, x, materialize_grads=True), 0)
            for name, v in taken.items()
        ]

    return ways
