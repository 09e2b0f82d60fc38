"""Where a matrix has elements that are not zero, as text and as SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.autodiff.matrix import DerivativeMatrix
from primgraph.errors import ArgumentError, FeedError, ShapeError
from primgraph.ir.graph import Graph
from primgraph.ir.plain import width_of
from primgraph.ir.signature import checked_late, checked_methods
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile
from primgraph.program.program import Program, program_of
from primgraph.view.scene import NOTE_SIZE
from primgraph.view.svg import document, label_text, number

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

# Larger matrices are drawn in cells of several rows and columns.
_WIDEST_TEXT, _TALLEST_TEXT = 72, 36
_MOST_CELLS = 240
_SIDE = 360.0
_SHADES = "░▒▓█"
# At how many points a Jacobian is evaluated where none is given; each is zero for some function.
_POINTS = 24


@final
@checked_methods("__init__")
@dataclass(frozen=True, slots=True)
class Spy:
    """Which elements of a matrix are not zero; it prints as a picture made of characters.

    `mask` is a boolean array of shape `(N, M)`. NaN counts as not zero.
    """

    mask: Mask

    @property
    def count(self) -> int:
        """How many elements are not zero."""
        return int(self.mask.sum())

    def __str__(self) -> str:
        rows, columns = self.mask.shape
        shares = _shares(self.mask, _TALLEST_TEXT, _WIDEST_TEXT)
        lines = [self._title()]
        lines += ["".join(map(_letter, row)) for row in shares.tolist()]
        if shares.shape != self.mask.shape:
            down, across = -(-rows // shares.shape[0]), -(-columns // shares.shape[1])
            lines.append(f"a character stands for up to {down} x {across} elements")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Spy {self._title()}>"

    def to_svg(self) -> str:
        """The picture as SVG, a square for each element, or for each cell of a large matrix."""
        shares = _shares(self.mask, _MOST_CELLS, _MOST_CELLS)
        rows, columns = shares.shape
        size = _SIDE / max(rows, columns, 1)
        side = size - 1 if size > 6 else size
        left, top = 16.0, 34.0
        width, height = columns * size, rows * size
        body = [
            label_text("note left", left, 22, self._title()),
            f'<rect class="frame" x="{number(left)}" y="{number(top)}" '
            f'width="{number(width)}" height="{number(height)}"/>',
        ]
        for i, j in np.argwhere(shares > 0).tolist():
            share = float(shares[i, j])
            faint = "" if share == 1 else f' fill-opacity="{number(0.25 + 0.75 * share)}"'
            body.append(
                f'<rect class="dot" x="{number(left + j * size)}" y="{number(top + i * size)}" '
                f'width="{number(side)}" height="{number(side)}"{faint}/>'
            )
        needed = width_of(self._title(), NOTE_SIZE, fixed=True)
        return document(
            body, max(width, needed) + 2 * left, top + height + 16, f"Spy: {self._title()}"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file whose name ends in .svg or .txt.

        Raises `ArgumentError` for another ending.
        """
        forms = {".svg": self.to_svg, ".txt": self.__str__}
        form = Path(path).suffix.lower()
        if form not in forms:
            raise ArgumentError(f"a spy picture is saved as .svg or .txt, not as {form!r}")
        Path(path).write_text(forms[form](), encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _title(self) -> str:
        share = 100 * self.count / self.mask.size if self.mask.size else 0.0
        rows, columns = self.mask.shape
        return f"{rows} x {columns}, {self.count} not zero ({share:.3g} %)"


@checked_late
def spy(matrix: Any, feed: Mapping[str, Any] | None = None) -> Spy:
    """Where `matrix` is not zero: an array of two axes, a mask, or a Jacobian or Hessian.

    A Jacobian, whose rows are all outputs and columns all inputs, is evaluated at `feed`, which
    has an array for each input that it needs, by name; parameters have the values of their
    program. Without `feed` it is evaluated at two dozen random points, a quarter of them
    near one, the others of either sign: an element is shown that is not zero at any of them, or
    NaN at all. This is what was seen, and no proof: a slope that is zero almost everywhere may be
    missed. An element is shown, too, if any sample of a batch has it.

    Raises `ShapeError` for an array of other than two axes, `ArgumentError` for a variable, which
    has no elements yet, `FeedError` for a feed that does not fit, and for inputs of integers
    without one.
    """
    if isinstance(matrix, Variable):
        raise ArgumentError(
            f"spy takes a matrix, not {matrix!r}",
            hint="pass what an Executor has computed for it, or a pg.Jacobian",
        )
    if isinstance(matrix, DerivativeMatrix):
        found = _evaluated(matrix, feed)
        mask: Mask = np.any(found, axis=0) if found.ndim == 3 else found
    else:
        try:
            array = np.asarray(matrix)
        except ValueError as error:
            raise ArgumentError(f"spy takes a matrix, not {matrix!r:.60}: {error}") from None
        if array.ndim != 2 or array.dtype.kind not in "biufc":
            raise ShapeError(f"spy takes a matrix of numbers, not {array.dtype} {array.shape}")
        mask = array != 0
    mask.setflags(write=False)
    return Spy(mask)


def _evaluated(matrix: DerivativeMatrix, feed: Mapping[str, Any] | None) -> Mask:
    """Which elements of a Jacobian are not zero at any of the points, samples first."""
    whole = matrix.whole()
    program = program_of(whole)
    graph = program.graph([whole])
    used = {v for eqn in graph.body for v in eqn.inputs} | set(graph.outputs)
    graph = Graph([v for v in graph.inputs if v in used], graph.body, graph.outputs, graph.name)
    kernel = compile(graph)
    seen: Mask | bool = False
    missing_always: Mask | bool = True
    for seed in range(_POINTS if feed is None else 1):
        given = _drawn(program, graph, seed) if feed is None else feed
        values = program.state_dict() | dict(given)
        missing = [v.hint for v in graph.inputs if v.hint not in values]
        if missing:
            raise FeedError(f"spy needs values for {', '.join(map(repr, missing))} too")
        found = kernel(*(values[v.hint] for v in graph.inputs))[0]
        unknown = np.isnan(found)
        seen = seen | ((found != 0) & ~unknown)
        missing_always = missing_always & unknown
    return np.asarray(seen | missing_always)


def _drawn(program: Program, graph: Graph, seed: int) -> dict[str, Any]:
    """Values for the inputs of floats: near one, where most functions are defined, or anywhere."""
    rng = np.random.default_rng(seed)
    states = program.state_dict()
    fed = [v for v in graph.inputs if v.hint not in states]
    for value in fed:
        if not value.type.is_float:
            raise FeedError(
                f"{value.hint!r} is {value.type}, and only values of floats can be made up",
                hint="pass feed={...} with an array for each input",
            )
    draw = partial(rng.uniform, 0.5, 1.5) if seed % 4 == 0 else partial(rng.normal, 0.0, 4.0)
    return {v.hint: np.asarray(draw(size=v.shape)).astype(v.dtype) for v in fed}


def _shares(mask: Mask, most_rows: int, most_columns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """How full of elements that are not zero cells are, of which there are at most so many.

    It is the share of such elements, divided by that of the fullest cell.
    """
    shares = mask.astype(np.float64)
    for axis, most in enumerate((most_rows, most_columns)):
        size = max(1, -(-shares.shape[axis] // most))
        starts = np.arange(0, shares.shape[axis], size)
        extents = np.diff(np.append(starts, shares.shape[axis]))
        if starts.size:
            shares = np.add.reduceat(shares, starts, axis=axis)
            shares /= extents[:, None] if axis == 0 else extents
    return shares / max(float(shares.max(initial=0.0)), np.finfo(np.float64).tiny)


def _letter(share: float) -> str:
    return "·" if share == 0 else _SHADES[min(int(share * len(_SHADES)), len(_SHADES) - 1)]
