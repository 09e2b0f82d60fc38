"""Find the origin of NaNs and infinities: evaluation by equation, up to the first that makes
one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.base.records import dataclass
from primgraph.codegen import Kernel
from primgraph.codegen.ops.card import Marks
from primgraph.codegen.ops.table import CARDS, marks_of
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.errors import WRITTEN, ArgumentError, NumericalError, run_error
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import require_primitive
from primgraph.ir.sizes import fit_to_arrays
from primgraph.ir.text import typed_equation
from primgraph.program.trace import trace
from primgraph.transforms.lower import lower

Array: TypeAlias = "np.ndarray[Any, Any]"


def check_finite(function: Callable[..., Any] | Graph | Kernel, *arrays: Any) -> list[Array]:
    """Return the results of `function` at `arrays`; the first NaN or infinity made is an error.

    `function` is a graph, a kernel, or a function on variables, which is traced. Its equations are
    evaluated one by one, as written. An equation makes a NaN or an infinity if none of its operands
    has one. Elements of `arrays` and of constants do not count, nor do values that every `pg.where`
    discards or that are only compared.

    Raises `NumericalError` with the first such equation, the user's line, and the ranges of the
    operands; `FeedError` for arrays that do not fit.

    >>> pg.check_finite(pg.sqrt, np.array([1.0, 4.0]))
    [array([1., 2.])]
    """
    if isinstance(function, Kernel):
        function = function.graph
    if not isinstance(function, Graph):
        if not callable(function):
            raise ArgumentError(
                f"check_finite takes a function, graph or kernel, not {function!r:.60}"
            )
        function = trace(function, *arrays)
    given = function.in_order(arrays, {})
    function = fit_to_arrays(function, given)
    names = [v.hint or str(i) for i, v in enumerate(function.inputs)]
    feeds = [as_feed(a, v.type, n) for a, v, n in zip(given, function.inputs, names, strict=True)]
    walk = Walk(lower(function))
    return walk.results(feeds)


@dataclass(frozen=True, slots=True)
class Creation:
    """Equation with its operands, its result, and the elements that it made NaN or infinite."""

    eqn: Equation
    operands: list[Array]
    result: Array
    made: Array


@final
class Walk:
    """Evaluation of `graph`, of primitives only, that tracks NaNs and infinities.

    `known` has the computed values. `marks` has an array for each value that depends on a bad
    element: 0 for an unaffected element, else a number that decreases with each creation, so that
    the maximum of several marks is the first creation.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[Value, Array] = {}
        self.marks: dict[Value, Array] = {}
        self.creations: list[Creation] = []

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs at `arrays`; raises `NumericalError` if they depend on a bad
        element."""
        self.known.update(zip(self.graph.inputs, arrays, strict=True))
        with np.errstate(all="ignore"):
            for eqn in self.graph.body:
                self._step(eqn)
        ends = [self.marks[v].max() for v in self.graph.outputs if v in self.marks]
        self._stop(np.array(ends, np.int64))
        return [np.array(self.known[v]) for v in self.graph.outputs]

    def _step(self, eqn: Equation) -> None:
        operands = [self.known[v] for v in eqn.inputs]
        try:
            found = eqn.op.evaluate(operands, eqn.kwargs)
        except Exception as error:
            if is_interruption(error):
                raise
            raise run_error(error)(
                f"{eqn.op.name} failed: {type(error).__name__}: {error}", origin=self.origin(eqn)
            ) from error
        carried = self._propagate_marks(eqn, operands)
        for k, (value, item) in enumerate(zip(eqn.outputs, found, strict=True)):
            result = self.known[value] = np.asarray(item, dtype=value.dtype)
            mark = None if carried is None else carried[k]
            made = created_nonfinite(eqn, operands, result)
            if made is not None:
                self.creations.append(Creation(eqn, operands, result, made))
                fresh = np.where(made, _FIRST - len(self.creations), 0)
                mark = fresh if mark is None else np.maximum(mark, fresh)
            if mark is not None and mark.any():
                self.marks[value] = mark

    def _propagate_marks(self, eqn: Equation, operands: list[Array]) -> Sequence[Array] | None:
        """Propagate marks from the operands to the outputs; None if there are none."""
        present, kind = [self.marks.get(v) for v in eqn.inputs], marks_of(eqn.op)
        if all(m is None for m in present) or kind is Marks.ENDED:
            return None
        marks = [
            np.zeros(v.shape, np.int64) if m is None else m
            for v, m in zip(eqn.inputs, present, strict=True)
        ]
        if eqn.op.formal:
            return marks[:1]
        if kind is Marks.CHOSEN:
            condition, x, y = marks
            return [np.maximum(condition, np.where(operands[0], x, y))]
        if kind is Marks.EACH:
            return [np.maximum.reduce(marks)]
        if kind is Marks.REDUCED:
            return [marks[0].max(axis=eqn.kwargs["axes"], initial=0)]
        if kind is Marks.MOVED:
            moved = require_primitive(eqn).linear_operands(len(marks))
            indices = [k for k in range(len(marks)) if k not in moved]
            if all(present[k] is None for k in indices):
                for k in indices:
                    marks[k] = operands[k]
                return eqn.op.evaluate(marks, eqn.kwargs)
        self._stop(np.array([m.max(initial=0) for m in marks]))
        raise AssertionError("there is nothing to stop for")

    def _stop(self, marks: Array) -> None:
        """Raise the error for the first creation in `marks`."""
        latest = int(marks.max(initial=0))
        if latest:
            raise self.error(self.creations[_FIRST - 1 - latest])

    def error(self, creation: Creation) -> NumericalError:
        """Return the error for a creation: its element, line and operands."""
        eqn, place = creation.eqn, _first(creation.made)
        shape = creation.result.shape
        there = [_format_number(a[place]) for a in creation.operands if a.shape == shape]
        pointwise = isinstance(eqn.op, Primitive) and eqn.op.elementwise
        made = f"{_format_number(creation.result[place])}{_format_place(place)}"
        card = CARDS.get(eqn.op)
        return NumericalError(
            f"{eqn.op.name} makes {made} of {' and '.join(there) if pointwise else 'what has none'}"
            + (f", {eqn.source}" if _role(eqn) else ""),
            origin=[
                *self.origin(eqn),
                *self.operands(eqn, place),
                f"result:        {eqn.outputs[0].type} {format_range(creation.result)}",
            ],
            hint="" if card is None else card.advice,
        )

    def operands(self, eqn: Equation, place: tuple[int, ...] = ()) -> list[str]:
        """Describe type, range and origin of each operand, and its element at `place` if it has
        one."""
        definers = {v: e for e in self.graph.body for v in e.outputs}
        lines = []
        for i, value in enumerate(eqn.inputs):
            array, definer = self.known[value], definers.get(value)
            text = f"operand {i}:     {value.type} {format_range(array)}"
            if place and array.shape == eqn.outputs[0].shape:
                text += f", {_format_number(array[place])}{_format_place(place)}"
            if value.hint:
                text += f"   {value.hint}"
            elif definer is not None:
                text += f"   from {definer.op.name}"
                text += f" {definer.source}" if _role(definer) else f" at {definer.source}"
            lines.append(text)
        return lines

    def origin(self, eqn: Equation) -> list[str]:
        """Return the lines for an error: where `eqn` was written, and its text."""
        lines = [f"equation:      {typed_equation(eqn, self.graph)}"]
        if eqn.source is not None:
            lines.insert(0, f"{WRITTEN}  {eqn.source}   {eqn.source.text}".rstrip())
        return lines


# Mark of the first creation; later ones have smaller marks.
_FIRST = 2**62


def _role(eqn: Equation) -> str:
    return eqn.source.role if eqn.source is not None else ""


def created_nonfinite(eqn: Equation, operands: Sequence[Array], result: Array) -> Array | None:
    """Return which elements of `result` are a NaN or an infinity that `eqn` made, or None.

    An elementwise equation makes one if the operands have none at the same index, other equations
    if they have none at all. A NaN from infinities, as in `inf - inf`, counts.
    """
    moves = marks_of(eqn.op) in (Marks.MOVED, Marks.CHOSEN)
    if not operands or moves or result.dtype.kind not in "fc" or np.isfinite(result).all():
        return None
    floats = [a for a in operands if a.dtype.kind in "fc"]
    elementwise = isinstance(eqn.op, Primitive) and eqn.op.elementwise
    made = np.zeros(result.shape, bool)
    for test in (np.isnan, np.isinf):
        bad = test(result)
        if elementwise:
            for array in floats:
                bad &= ~test(array)
        elif any(test(a).any() for a in floats):
            continue
        made |= bad
    return made if made.any() else None


def format_range(array: Array) -> str:
    """Return the range of the finite elements, and the number of others."""
    if array.size < 2:
        return _format_number(array.reshape(-1)[0]) if array.size else "without elements"
    if array.dtype.kind == "c":
        return f"absolute values {format_range(np.abs(array))}"
    finite = array[np.isfinite(array)]
    parts = (
        [f"from {_format_number(finite.min())} to {_format_number(finite.max())}"]
        if finite.size
        else []
    )
    for test, name in ((np.isnan, "NaN"), (np.isposinf, "inf"), (np.isneginf, "-inf")):
        count = int(test(array).sum()) if array.dtype.kind == "f" else 0
        if count:
            parts.append(f"{count} {name}")
    return ", ".join(parts)


def _first(mask: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])


def _format_place(place: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, place))}]" if place else ""


def _format_number(number: Any) -> str:
    """Print a number with the digits that distinguish it from its neighbours in its dtype."""
    return "NaN" if number != number else str(number)
