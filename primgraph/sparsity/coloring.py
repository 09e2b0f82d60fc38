"""Compressed products that determine all elements of a sparse matrix.

The columns of one colour are added in one product with the matrix, the rows of one colour in one
with its transpose. If a colour occurs once in a row, or in a column, the sum is an element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.sparsity import greedy, rounds
from primgraph.sparsity.greedy import ORDERS, acyclic_colors
from primgraph.sparsity.lattices import fullest, lattice_colors, rows_of
from primgraph.sparsity.pattern import Indices, Pattern

SIDES = ("auto", "columns", "rows", "both")
SYMMETRIC = ("auto", "star", "acyclic", "columns")
# Up to this many elements all orders are tried; acyclic colourings are limited by the total number
# of neighbours of neighbours.
_SMALL = 100_000
_WORK = 1_000_000
# Above this many elements only one side is coloured, many vertices at a time, if no row or column
# is very full.
_LARGE = 2_000_000
_WIDE = 256
# Maximum length of chains of substitutions.
_DEPTH = 200


@final
@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Elements computed from known ones: a sum minus these.

    `elements` are numbers of elements of the pattern, `places` those of their sums. The element
    `others[k]` is subtracted from number `into[k]` of this step.
    """

    elements: Indices
    places: Indices
    others: Indices
    into: Indices


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coloring:
    """Colours of the columns and of the rows of a matrix of that `pattern`.

    `columns` or `rows` is None if that side is not used; -1 is the colour of a column, or row, in
    no product. `places` has, for each element of the pattern, its position in the concatenated
    products: `column_count` products with the matrix, of m elements each, then `row_count` with its
    transpose, of n each. With `steps`, elements of earlier steps are subtracted from it.
    """

    pattern: Pattern
    columns: Indices | None
    rows: Indices | None
    places: Indices
    steps: tuple[Step, ...] = ()

    @property
    def column_count(self) -> int:
        """Number of products with the matrix."""
        return _count(self.columns)

    @property
    def row_count(self) -> int:
        """Number of products with the transpose."""
        return _count(self.rows)

    @property
    def count(self) -> int:
        """Number of products."""
        return self.column_count + self.row_count

    def __repr__(self) -> str:
        names = (("columns", self.column_count), ("rows", self.row_count))
        told = " and ".join(f"{n} colours of {name}" for name, n in names if n) or "no colours"
        deep = f", {len(self.steps)} steps of substitution" if self.steps else ""
        return f"<Coloring of {self.pattern!r}: {told}{deep}>"


def coloring(pattern: Pattern, side: str = "auto", order: str = "auto") -> Coloring:
    """Colour the columns or rows of a pattern, or both, with the fewest colours.

    In each row, no two elements have columns of one colour; or in each column, no two have rows of
    one colour. With both, the fullest rows or columns are computed by products of the other side
    than the rest, as for arrow heads (Coleman and Verma, SIAM J. Sci. Comput. 19, 1998). At equal
    counts columns win, since they use forward mode. `side` chooses.

    Raises `ArgumentError` for an object that is not a pattern, `OptionError` for another side or
    order.

    >>> pg.coloring(pg.jacobian_sparsity(lambda x: x[1:] * x[:-1], np.ones(100))).count
    2
    """
    _require_pattern("coloring", pattern)
    _require("a side", side, SIDES)
    _require("an order", order, ("auto", *ORDERS))
    if side == "columns":
        return _column_coloring(pattern, _fewest(pattern, order))
    if side == "rows":
        return _row_coloring(pattern, _fewest(pattern.T, order))
    least = fullest(pattern), fullest(pattern.T)
    mixed = _best_bicoloring(pattern, order, min(least) if side == "auto" else None)
    if mixed is not None:
        return mixed
    sides = ((_column_coloring, pattern), (_row_coloring, pattern.T))
    first = int(least[0] > least[1])
    best = _fewest(sides[first][1], order)
    found = sides[first][0](pattern, best)
    # Stop the search at as many colours as are known already.
    beaten = least[1 - first] + (first == 0)
    if beaten <= found.count and pattern.nnz <= _LARGE:
        other = _fewest(sides[1 - first][1], order)
        if _count(other) + (first == 0) <= found.count:
            found = sides[1 - first][0](pattern, other)
    if pattern.nnz > _LARGE:
        return found
    return _best_bicoloring(pattern, order, found.count) or found


def symmetric_coloring(pattern: Pattern, method: str = "auto", order: str = "auto") -> Coloring:
    """Colour the columns of a symmetric matrix, for products that give each element or its image.

    With "star" colours, each element or its mirror image is alone in a product; "acyclic" ones are
    fewer and need substitution; "columns" ignore the symmetry. "auto" takes star colours, or those
    of columns if these are no more.

    Raises `ArgumentError` for what is no pattern, `ShapeError` for one that is not symmetric,
    `OptionError` for another method or order, and for acyclic colours of a matrix in which
    substitution chains are very long.

    >>> pattern = pg.hessian_sparsity(lambda x: pg.sum(x[1:] * x[:-1]), np.ones(9))
    >>> pg.symmetric_coloring(pattern).count
    3
    """
    _require_pattern("symmetric_coloring", pattern)
    _require("a method", method, SYMMETRIC)
    _require("an order", order, ("auto", *ORDERS))
    if pattern.shape[0] != pattern.shape[1] or pattern != pattern.T:
        raise ShapeError(f"{pattern!r} is not symmetric")
    if method == "columns":
        return _column_coloring(pattern, _fewest(pattern, order))
    if method == "acyclic":
        return _substitution_coloring(pattern, _acyclic(pattern, order))
    hubs, rest = _remove_hubs(pattern)
    found = _star(rest, order, hubs.size)
    found[hubs] = np.arange(hubs.size)
    return _star_coloring(pattern, _dense(found))


def _count(colors: Indices | None) -> int:
    return 0 if colors is None else int(colors.max(initial=-1)) + 1


def _require_pattern(name: str, pattern: object) -> None:
    if not isinstance(pattern, Pattern):
        raise ArgumentError(
            f"{name} takes a pattern, not {pattern!r:.60}",
            hint="pg.Pattern.from_dense(mask) and pg.Pattern.from_scipy(matrix) give one",
        )


def _require(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise OptionError(f"{what} is one of {', '.join(names)}, not {name!r:.60}")


def _orders(pattern: Pattern, order: str) -> Iterator[str]:
    if order != "auto":
        yield order
        return
    yield "natural"
    if pattern.nnz <= _SMALL:
        yield "largest_first"
        if _work(pattern) <= _WORK:
            yield "smallest_last"


def _work(pattern: Pattern) -> int:
    """Return the total number of elements in the rows of all elements."""
    return int(np.sum(np.diff(pattern.indptr).astype(np.float64) ** 2))


def _fewest(pattern: Pattern, order: str) -> Indices:
    """Colour the columns by number if that is optimal, else greedily."""
    least = fullest(pattern)
    if order != "auto":
        return _column_colors(pattern, order)
    best = _column_colors(pattern) if pattern.nnz <= _SMALL else None
    if best is None or _count(best) > least:
        found = lattice_colors(pattern, least)
        if found is not None:
            return found
    for name in _orders(pattern, order):
        found = best if best is not None and name == "natural" else _column_colors(pattern, name)
        if best is None or _count(found) < _count(best):
            best = found
        if _count(best) <= least:
            break
    assert best is not None
    if _count(best) > least + 1:
        found = lattice_colors(pattern, _count(best) - 1)
        best = best if found is None else found
    return best


def _star(pattern: Pattern, order: str, first: int) -> Indices:
    """Return star colours that start at `first`."""
    least = fullest(pattern)
    best = None
    if order == "auto":
        best = lattice_colors(pattern, least + 1)
        if best is not None:
            best = best + first
            if pattern.nnz > _SMALL:
                return best
    for name in _orders(pattern, order):
        found = _star_colors(pattern, name, first)
        if best is None or _count(found) < _count(best):
            best = found
    assert best is not None
    return best


def _is_vast(pattern: Pattern, order: str) -> bool:
    """Return whether greedy colouring would be slow, so that parallel rounds are used."""
    wide = max(fullest(pattern), fullest(pattern.T))
    return order == "natural" and pattern.nnz > _LARGE and wide <= _WIDE


def _column_colors(pattern: Pattern, order: str = "natural") -> Indices:
    vast = _is_vast(pattern, order)
    return rounds.column_colors(pattern) if vast else greedy.column_colors(pattern, order)


def _star_colors(pattern: Pattern, order: str, first: int) -> Indices:
    if _is_vast(pattern, order):
        return rounds.star_colors(pattern, first)
    return greedy.star_colors(pattern, order, first)


def _acyclic(pattern: Pattern, order: str) -> Indices:
    if _work(pattern) > _WORK:
        raise OptionError(
            f"acyclic colours of {pattern!r} take long to find", hint="take star colours"
        )
    found = [acyclic_colors(pattern, name) for name in _orders(pattern, order)]
    return min(found, key=_count)


def _remove_hubs(pattern: Pattern) -> tuple[Indices, Pattern]:
    """Return hubs, vertices that should have their own colour, and the pattern without them."""
    counts = np.diff(pattern.indptr)
    order = np.argsort(-counts, kind="stable")
    left = np.append(counts[order], 0)
    # Without the k fullest rows, the next one still needs a colour per element, except in the
    # columns of these k.
    several = np.arange(left.size)
    best = int(np.argmin(several + left))
    if best + left[best] >= 0.75 * left[0]:
        return order[:0], pattern
    hubs = np.sort(order[:best])
    is_hub = np.zeros(pattern.shape[0], np.bool_)
    is_hub[hubs] = True
    kept = ~(is_hub[pattern.rows] | is_hub[pattern.indices])
    return hubs, _restrict(pattern, kept)


def _restrict(pattern: Pattern, kept: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Pattern:
    """Return the pattern of these elements."""
    ends = np.concatenate([[0], np.cumsum(kept)])
    return Pattern(pattern.shape, ends[pattern.indptr], pattern.indices[kept])


def _dense(colors: Indices) -> Indices:
    """Renumber colours without gaps."""
    found: Indices = np.unique(colors, return_inverse=True)[1].astype(np.int64)
    return found


def _column_coloring(pattern: Pattern, colors: Indices) -> Coloring:
    places = colors[pattern.indices] * pattern.shape[0] + pattern.rows
    return Coloring(pattern, colors, None, places)


def _row_coloring(pattern: Pattern, colors: Indices) -> Coloring:
    places = colors[pattern.rows] * pattern.shape[1] + pattern.indices
    return Coloring(pattern, None, colors, places)


def _best_bicoloring(pattern: Pattern, order: str, most: int | None) -> Coloring | None:
    """Colour the fullest rows by rows and the rest by columns, or vice versa.

    None if that takes nearly `most` colours, or more.
    """
    found = []
    for given in (pattern, pattern.T):
        counts = np.diff(given.indptr)
        rows = np.argsort(-counts, kind="stable")
        left = np.append(counts[rows], 0)
        best = int(np.argmin(np.arange(left.size) + left))
        if most is None or best + left[best] < 0.75 * most:
            found.append(_bicoloring(given, np.sort(rows[:best]), order, given is not pattern))
    fewest = min(found, key=lambda c: c.count, default=None)
    return fewest if fewest is None or most is None or fewest.count < most else None


def _bicoloring(pattern: Pattern, apart: Indices, order: str, turned: bool) -> Coloring:
    """Colour the rows `apart` by rows, the others by columns; transpose the result if `turned`."""
    height, width = pattern.shape
    is_apart = np.zeros(height, np.bool_)
    is_apart[apart] = True
    rest = _restrict(pattern, ~is_apart[pattern.rows])
    columns = _fewest(rest, order)
    columns[np.bincount(rest.indices, minlength=width) == 0] = -1
    rows = np.full(height, -1, np.int64)
    rows[apart] = _fewest(rows_of(pattern, apart).T, order)
    by_column = columns[pattern.indices] * height + pattern.rows
    by_row = rows[pattern.rows] * width + pattern.indices
    if not turned:
        by_row += _count(columns) * height
        places = np.where(is_apart[pattern.rows], by_row, by_column)
        return Coloring(pattern, columns, rows, places)
    by_column += _count(rows) * width
    places = np.where(is_apart[pattern.rows], by_row, by_column)
    # Elements are in the order of the transposed pattern.
    at = np.lexsort((pattern.rows, pattern.indices))
    return Coloring(pattern.T, rows, columns, places[at])


def _star_coloring(pattern: Pattern, colors: Indices) -> Coloring:
    """Read each element and its mirror element from a sum in which one of both is alone."""
    size, count = pattern.shape[0], _count(colors)
    rows, columns = pattern.rows, pattern.indices
    keys = colors[columns] * size + rows
    if count * size <= 16 * keys.size + 1024:
        alone = np.bincount(keys, minlength=1)[keys] == 1
    else:
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        alone = counts[inverse] == 1
    mirrored = colors[rows] * size + columns
    lower = rows >= columns
    first, second = np.where(lower, keys, mirrored), np.where(lower, mirrored, keys)
    at = pattern._column_order
    lower_alone = np.where(lower, alone, alone[at])
    return Coloring(pattern, colors, None, np.where(lower_alone, first, second))


def _substitution_coloring(pattern: Pattern, colors: Indices) -> Coloring:
    """Solve for elements by substitution: first those alone in a sum, then those left alone.

    In each two-coloured tree the leaves are known first, then the leaves of the remaining tree.
    """
    size, count = pattern.shape[0], _count(colors)
    rows, columns = pattern.rows, pattern.indices
    mirror = pattern._column_order
    lower = np.flatnonzero(rows >= columns)
    # The sums that contain an element and its mirror element.
    sums = colors[columns] * size + rows
    pairs = np.stack([sums[lower], sums[mirror[lower]]])
    single = rows[lower] == columns[lower]
    left = np.bincount(np.where(single, -1, pairs).ravel() + 1, minlength=count * size + 1)[1:]
    left += np.bincount(pairs[0][single], minlength=count * size)
    known_in: dict[int, list[int]] = {}
    waiting = np.ones(lower.size, np.bool_)
    steps: list[Step] = []
    while waiting.any():
        number = np.flatnonzero(waiting)
        ready = left[pairs[:, number]] == 1
        number, side = number[ready.any(axis=0)], np.where(ready[0], 0, 1)[ready.any(axis=0)]
        if len(steps) == _DEPTH:
            raise OptionError(
                f"more than {_DEPTH} elements of {pattern!r} wait for each other",
                hint="take star colours",
            )
        places = pairs[side, number]
        others = [known_in.get(p, []) for p in places.tolist()]
        flat = np.array([o for group in others for o in group], np.int64)
        into = np.repeat(np.arange(number.size), [len(group) for group in others])
        steps.append(Step(lower[number], places, lower[flat], into))
        waiting[number] = False
        for n, (a, b), alone in zip(
            number.tolist(), pairs[:, number].T.tolist(), single[number].tolist(), strict=True
        ):
            for place in {a} if alone else {a, b}:
                left[place] -= 1
                known_in.setdefault(place, []).append(n)
    places = np.where(rows >= columns, sums, sums[mirror])
    return Coloring(pattern, colors, None, places, tuple(steps))
