"""Sparsity plots of matrices, as text and as SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.plain_text import width_of
from primgraph.derivatives.matrices.lazy_jacobian import LazyJacobian
from primgraph.derivatives.matrices.matrix import DerivativeMatrix
from primgraph.derivatives.matrices.sparsity_patterns import pattern_of, too_large
from primgraph.errors import ArgumentError, FeedError, ShapeError
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Graph
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile
from primgraph.program.program import program_of
from primgraph.sparsity.coloring import Coloring
from primgraph.sparsity.coloring import coloring as colored
from primgraph.sparsity.pattern import Pattern
from primgraph.view.formats.svg import document, label_text, number
from primgraph.view.scene import NOTE_SIZE

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

# Larger matrices are drawn in cells of several rows and columns.
_WIDEST_TEXT, _TALLEST_TEXT = 72, 36
_MOST_CELLS = 300
# Fewer cells across or down would not show the shape.
_LEAST_CELLS = 24
_SIDE = 360.0
_SHADES = "░▒▓█"
# Maximum number of tick labels on an axis.
_TICKS = 6


@final
@checked_methods("__init__")
@dataclass(frozen=True, slots=True)
class Spy:
    """Nonzero elements of a matrix; it prints as a character picture.

    `pattern` has the elements, of a matrix of shape `(N, M)`. NaN counts as nonzero. With a
    `coloring`, elements computed by one derivative product have one colour in the picture.
    """

    pattern: Pattern
    coloring: Coloring | None = None

    @property
    def mask(self) -> Mask:
        """Return the elements as a boolean array of shape `(N, M)`."""
        mask = self.pattern.to_dense()
        mask.setflags(write=False)
        return mask

    @property
    def count(self) -> int:
        """Number of nonzero elements."""
        return self.pattern.nnz

    def __str__(self) -> str:
        rows, columns = self.pattern.shape
        shares = _shares(self.pattern, _sizes(self.pattern, _TALLEST_TEXT, _WIDEST_TEXT))
        lines = [self._title()]
        lines += ["".join(map(_letter, row)) for row in shares.tolist()]
        if shares.shape != self.pattern.shape:
            down, across = -(-rows // shares.shape[0]), -(-columns // shares.shape[1])
            lines.append(f"a character stands for up to {down} x {across} elements")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Spy {self._title()}>"

    def to_svg(self) -> str:
        """Draw the picture as SVG: a square for each element, or for each cell of a large matrix.

        The numbers of columns are above it, and those of rows on the left.
        """
        sizes = _square(self.pattern)
        shares = _shares(self.pattern, sizes)
        fills = {} if self.coloring is None else _fills(self.coloring, sizes)
        rows, columns = shares.shape
        size = _SIDE / max(rows, columns, 1)
        side = size - 1 if size > 6 else size
        left, top = 24.0 + width_of(str(self.pattern.shape[0]), NOTE_SIZE, fixed=True), 66.0
        width, height = columns * size, rows * size
        body = [
            label_text("note left", 16, 22, self._title()),
            label_text("note left", left, 42, "column"),
            label_text("note right", left - 8, 42, "row"),
            *[
                label_text("note", left + (j / sizes[1] + 0.5) * size, top - 8, str(j))
                for j in _ticks(self.pattern.shape[1])
            ],
            *[
                label_text("note right", left - 6, top + (i / sizes[0] + 0.5) * size + 4, str(i))
                for i in _ticks(self.pattern.shape[0])
            ],
            f'<rect class="frame" x="{number(left)}" y="{number(top)}" '
            f'width="{number(width)}" height="{number(height)}"/>',
        ]
        for i, j in np.argwhere(shares > 0).tolist():
            share = float(shares[i, j])
            faint = "" if share == 1 else f' fill-opacity="{number(0.25 + 0.75 * share)}"'
            fill = f' style="fill:{fills[i, j]}"' if (i, j) in fills else ""
            body.append(
                f'<rect class="dot" x="{number(left + j * size)}" y="{number(top + i * size)}" '
                f'width="{number(side)}" height="{number(side)}"{faint}{fill}/>'
            )
        needed = width_of(self._title(), NOTE_SIZE, fixed=True)
        return document(
            body, left + max(width, needed) + 24, top + height + 16, f"Spy: {self._title()}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file with the extension .svg or .txt.

        Raises `ArgumentError` for another extension.
        """
        forms = {".svg": self.to_svg, ".txt": self.__str__}
        form = Path(path).suffix.lower()
        if form not in forms:
            raise ArgumentError(f"a spy picture is saved as .svg or .txt, not as {form!r}")
        Path(path).write_text(forms[form](), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _title(self) -> str:
        rows, columns = self.pattern.shape
        told = "" if self.coloring is None else f", {self.coloring.count} colours"
        share = f"{100 * self.pattern.density:.3g} %"
        return f"{rows} x {columns}, {self.count} nonzeros ({share}){told}"


@checked_late
def spy(
    matrix: Any, feed: Mapping[str, Any] | None = None, coloring: bool | Coloring = False
) -> Spy:
    """Draw where `matrix` is nonzero: an array, a mask, a pattern, a Jacobian or Hessian.

        pg.spy(pg.sparse_jacobian(f, x), coloring=True).save("jacobian.svg")

    A Jacobian, with all outputs as rows and all inputs as columns, shows the elements that may be
    nonzero for some inputs, as derived from its graph; see `pg.jacobian_sparsity`. With `feed`,
    which has an array for each input by name, it is evaluated there, with the parameters of its
    program. An element is shown if it is nonzero in any sample of a batch. With `coloring`,
    elements that one derivative product computes have one colour: the colours of a
    `pg.SparseMatrix`, else those of `pg.coloring`, or those given.

    Raises `ShapeError` for an array of other than two axes and for extents that are not known,
    `ArgumentError` for a variable, which has no elements yet, `FeedError` for a feed that does not
    fit.

    >>> picture = pg.spy(np.tri(3))
    >>> picture.count
    6
    >>> picture.save("matrix.svg")
    """
    if isinstance(matrix, Variable):
        raise ArgumentError(
            f"spy takes a matrix, not {matrix!r}",
            hint="pass what an Executor has computed for it, or a pg.Jacobian",
        )
    pattern = _any_pattern(matrix, feed)
    if coloring is False:
        return Spy(pattern)
    own = getattr(matrix, "coloring", None) if coloring is True else coloring
    found = own if isinstance(own, Coloring) else colored(pattern)
    if found.pattern.shape != pattern.shape:
        raise ShapeError(
            f"spy: the coloring is of a matrix of shape {found.pattern.shape}, and the matrix "
            f"has shape {pattern.shape}"
        )
    return Spy(pattern, found)


def _any_pattern(matrix: Any, feed: Mapping[str, Any] | None) -> Pattern:
    if isinstance(matrix, Pattern):
        return matrix
    if isinstance(matrix, DerivativeMatrix):
        return _pattern(matrix) if feed is None else _pattern_at_feed(matrix, feed)
    try:
        array = np.asarray(matrix)
    except ValueError as error:
        raise ArgumentError(f"spy takes a matrix, not {matrix!r:.60}: {error}") from None
    if array.ndim != 2 or array.dtype.kind not in "biufc":
        raise ShapeError(f"spy takes a matrix of numbers, not {array.dtype} {array.shape}")
    return Pattern.from_dense(array)


def _pattern(matrix: DerivativeMatrix) -> Pattern:
    """Return the elements of a Jacobian that may be nonzero."""
    lazy = matrix._matrix
    if not isinstance(lazy, LazyJacobian):
        raise ArgumentError(
            "spy takes a Jacobian of variables, not of tensors",
            hint="look at the array: pg.spy(jacobian[...].numpy())",
        )
    found = pattern_of(lazy.operator)
    if found is None:
        raise too_large("spy", lazy.operator.shape)
    return found


def _pattern_at_feed(matrix: DerivativeMatrix, feed: Mapping[str, Any]) -> Pattern:
    """Return the elements of a Jacobian that are nonzero at the feed, in any sample."""
    whole = matrix.whole()
    program = program_of(whole)
    graph = program.graph([whole])
    used = {v for eqn in graph.body for v in eqn.inputs} | set(graph.outputs)
    graph = Graph([v for v in graph.inputs if v in used], graph.body, graph.outputs, graph.name)
    values = program.state_dict() | dict(feed)
    missing = [v.hint for v in graph.inputs if v.hint not in values]
    if missing:
        raise FeedError(f"spy needs values for {', '.join(map(repr, missing))} too")
    found = compile(graph)(*(values[v.hint] for v in graph.inputs))[0] != 0
    return Pattern.from_dense(np.any(found, axis=0) if found.ndim == 3 else found)


def _sizes(pattern: Pattern, most_rows: int, most_columns: int) -> tuple[int, int]:
    """Return the numbers of rows and columns per cell that limit the numbers of cells."""
    rows, columns = pattern.shape
    return max(1, -(-rows // most_rows)), max(1, -(-columns // most_columns))


def _square(pattern: Pattern) -> tuple[int, int]:
    """Return the same with square cells, which keep the shape of the matrix, if enough cells
    remain."""
    sizes = _sizes(pattern, _MOST_CELLS, _MOST_CELLS)
    size = max(sizes)
    return (size, size) if min(pattern.shape) >= _LEAST_CELLS * size else sizes


def _shares(pattern: Pattern, sizes: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the density of nonzero elements in cells of this many rows and columns.

    It is relative to the density of the fullest cell.
    """
    shape = [-(-n // size) for n, size in zip(pattern.shape, sizes, strict=True)]
    cells = pattern.rows // sizes[0] * max(shape[1], 1) + pattern.cols // sizes[1]
    shares = np.bincount(cells, minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
    for axis, (extent, size) in enumerate(zip(pattern.shape, sizes, strict=True)):
        starts = np.arange(0, extent, size)
        extents = np.diff(np.append(starts, extent))
        if starts.size:
            shares /= extents[:, None] if axis == 0 else extents
    return shares / max(float(shares.max(initial=0.0)), np.finfo(np.float64).tiny)


def _ticks(extent: int) -> list[int]:
    """Return the indices to write beside an axis: evenly spaced round ones, and the last one."""
    power = 10 ** max(len(str(extent)) - 2, 0)
    step = next(k * power for k in (1, 2, 5, 10, 20, 50) if extent <= k * power * _TICKS)
    last = max(extent - 1, 0)
    return [k for k in range(0, last, step) if 2 * (last - k) > step] + [last] * (extent > 0)


def _fills(coloring: Coloring, sizes: tuple[int, int]) -> dict[tuple[int, int], str]:
    """Return the colour of each cell, that of its first element."""
    pattern = coloring.pattern
    found: dict[tuple[int, int], str] = {}
    for i, j in zip(pattern.rows.tolist(), pattern.cols.tolist(), strict=True):
        by_column = -1 if coloring.columns is None else int(coloring.columns[j])
        by_row = -1 if coloring.rows is None else int(coloring.rows[i])
        color = by_column if by_column >= 0 else coloring.column_count + by_row
        # Multiples of the golden angle are far apart on the colour circle.
        hue = color * 137.508 % 360
        found.setdefault((i // sizes[0], j // sizes[1]), f"hsl({number(hue)},60%,50%)")
    return found


def _letter(share: float) -> str:
    return "·" if share == 0 else _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
