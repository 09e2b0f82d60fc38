"""Loop rerolling: one computation of vectors for many numbers that were computed alike.

Python loops such as `np.array([x[i] ** 2 + x[i + 1] for i in range(n)])`, and those that add up
`total += x[i] ** 2`, record some equations for each number. Where many numbers of a stack or a sum
have the same form, they become one vector: operands that all share are broadcast, elements of one
array are sliced, constants are one array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import require_primitive
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import COMPLEX128, FLOAT64
from primgraph.primitives.constants import constant_op
from primgraph.primitives.elementwise import SIGNS, is_addition, neg
from primgraph.primitives.indexing import gather
from primgraph.primitives.reductions import cumsum, reduce_sum
from primgraph.primitives.shapes import JOINED, broadcast, concat, permute, reshape, slice_
from primgraph.transforms.dataflow.contract import primitives_only, transform

# Minimum count of numbers in a stack for which vectors pay off. One part in so many has one form.
_LEAST = 32
_ALIKE = 4
# Dtypes whose running sums are rounded as numbers added one by one.
_ADDED = frozenset({FLOAT64, COMPLEX128})
# Maximum depth of a form.
_DEEPEST = 64

# The numbers that are stacked or added up, and the equations of those that are subtracted.
_Root: TypeAlias = tuple[tuple[Value, ...], list[Equation]]
# Vectors, with the numbers that they stand for.
Columns: TypeAlias = Mapping[Value, tuple[Value, ...]]


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def vectorize_stacks(graph: Graph, least: int = _LEAST) -> Graph:
    """Compute numbers that are computed alike, and then joined or added up, as vectors.

    Each element has the bits of NumPy's functions of arrays, and sums keep theirs, as the last of
    running sums. Stacks and sums of fewer than `least` numbers are left alone.

    >>> def differences(x):
    ...     return pg.stack([x[i + 1] - x[i] for i in range(99)])
    >>> print(pg.transforms.vectorize_stacks(pg.trace(differences, pg.spec(100))))
    graph differences(%x: f64[100]) {
      %0: f64[99] = slice(%x, sizes=(99,), starts=(1,), steps=(1,))
      %1: f64[99] = slice(%x, sizes=(99,), starts=(0,), steps=(1,))
      %2: f64[99] = sub(%0, %1)
      %3: f64[99] = reshape(%2, shape=(99,))
      return %3
    }
    """
    return vectors_of_stacks(graph, least=least)[0]


def vectors_of_stacks(
    graph: Graph,
    kept: Collection[Value] = (),
    *,
    in_order: bool = True,
    least: int = _LEAST,
) -> tuple[Graph, Columns]:
    """Return the graph of `vectorize_stacks`, and the numbers that each vector stands for.

    Values that stay are those of `graph`, among them those in `kept` that are numbers. Unless
    `in_order`, sums may round differently.
    """
    roots = _sums(graph, kept, least)
    roots |= {eqn: (eqn.inputs, []) for eqn in graph.body if _is_stack(eqn, least)}
    if not roots:
        return graph, {}
    stacks = _Stacks(graph, kept, least)
    body: list[Equation] = []
    for eqn in graph.body:
        numbers, negatives = roots.get(eqn, ((), []))
        found = stacks.reroll(numbers, negatives) if numbers else None
        if found is None:
            body.append(eqn)
            continue
        if is_addition(eqn):
            found = stacks.total(found, in_order)
        body += [*negatives, *stacks.take()]
        shape = freeze_all([("shape", eqn.output.shape)])
        body.append(Equation(reshape, (found,), shape, eqn.outputs, eqn.source))
    if not stacks.columns:
        return graph, {}
    kept_equations = backward_slice(body, graph.outputs)
    return Graph(graph.inputs, kept_equations, graph.outputs, graph.name), stacks.columns


def _is_stack(eqn: Equation, least: int) -> bool:
    """Return whether an equation joins many numbers."""
    return (
        len(eqn.inputs) >= least
        and eqn.held(JOINED) is not None
        and all(map(_is_number, eqn.inputs))
    )


def _sums(graph: Graph, kept: Collection[Value], least: int) -> dict[Equation, _Root]:
    """Return the terms of long sums that are added up one by one, by their last equations."""
    reads = Counter([v for eqn in graph.body for v in eqn.inputs])
    reads.update(graph.outputs)
    sums: dict[Value, tuple[Equation, list[Value], list[Equation]]] = {}
    for eqn in graph.body:
        if not is_addition(eqn) or eqn.output.dtype not in _ADDED:
            continue
        if not all(map(_is_number, eqn.inputs)):
            continue
        is_difference = -1 in eqn.op.fact(SIGNS)
        places = [0] if is_difference else [0, 1]
        before = [i for i in places if eqn.inputs[i] in sums]
        before = [i for i in before if reads[v := eqn.inputs[i]] == 1 and v not in kept]
        first = max(before, key=lambda i: len(sums[eqn.inputs[i]][1]), default=0)
        start = eqn.inputs[first]
        _, terms, negatives = sums.pop(start) if before else (None, [start], [])
        term = eqn.inputs[1 - first]
        if is_difference:
            negatives.append(Equation(neg, (term,), (), (Value(term.type),), eqn.source))
            term = negatives[-1].output
        terms.append(term)
        sums[eqn.output] = eqn, terms, negatives
    return {e: (tuple(terms), n) for e, terms, n in sums.values() if len(terms) >= least}


@final
class _Stacks:
    """Numbers of a graph that are stacked, with the form of each value that they are made of.

    A form is a number: equal forms have the same operations on elements of the same arrays.
    """

    def __init__(self, graph: Graph, kept: Collection[Value], least: int) -> None:
        self._alike = max(1, least // _ALIKE)
        self._definition = {v: eqn for eqn in graph.body for v in eqn.outputs}
        self._kept = frozenset(kept)
        # Numbers and their depth for forms, the numbers that views show, and those that functions
        # of numbers return.
        self._forms: dict[Value, tuple[int, int]] = {}
        self._sources: dict[Value, Value] = {}
        self._computed: set[Value] = set()
        self._known: dict[Any, int] = {}
        self._vectors: dict[tuple[Value, ...], Value] = {}
        self._made: list[Equation] = []
        self._near: Equation | None = None
        self.columns: dict[Value, tuple[Value, ...]] = {}
        for eqn in graph.body:
            if len(eqn.outputs) == 1 and _is_number(eqn.output):
                self._add_form(eqn)

    def take(self) -> list[Equation]:
        """Return the equations that were made since the last call."""
        made, self._made = self._made, []
        return made

    def reroll(self, numbers: Sequence[Value], made: Sequence[Equation]) -> Value | None:
        """Return the vector of numbers, most of which are computed alike; None if they are not.

        Some of them are results of equations that were `made` for them.
        """
        for eqn in made:
            self._definition[eqn.output] = eqn
            self._add_form(eqn)
        groups: dict[int, list[int]] = {}
        for place, value in enumerate(numbers):
            groups.setdefault(self._form(value)[0], []).append(place)
        alike = [places for places in groups.values() if len(places) >= self._alike]
        rest = [i for places in groups.values() if len(places) < self._alike for i in places]
        if 2 * len(rest) > len(numbers) or len(alike) * self._alike > len(numbers):
            return None
        sources = [self._sources.get(v, v) for v in numbers]
        if all(sources[places[0]] not in self._definition for places in alike):
            return None
        parts = sorted([*alike, *([i] for i in rest)])
        vectors = [self._vector(tuple([numbers[i] for i in places])) for places in parts]
        if _alternate(parts):
            columns = [self._reshaped(v, len(parts[0]), 1) for v in vectors]
            table = self._emit(concat, columns, axis=1)
            return self._reshaped(table, len(numbers))
        whole = self._emit(concat, vectors, axis=0) if len(parts) > 1 else vectors[0]
        order = [i for places in parts for i in places]
        if order == [*range(len(order))]:
            return whole
        return self._emit(gather, [whole, self._constant(np.argsort(order))], axis=0)

    def total(self, terms: Value, in_order: bool) -> Value:
        """Return the sum of a vector, by default one term after the other."""
        if not in_order:
            return self._emit(reduce_sum, [terms], axes=(0,))
        sums = self._emit(cumsum, [terms], axis=0, reverse=False)
        last = {"starts": (terms.shape[0] - 1,), "sizes": (1,), "steps": (1,)}
        return self._emit(slice_, [sums], **last)

    def _add_form(self, eqn: Equation) -> None:
        """Note the form of the number that an equation computes from numbers that have theirs."""
        value, op = eqn.output, require_primitive(eqn)
        if value in self._kept or op.formal or op.stops:
            return
        if op.is_view and _is_number(eqn.inputs[0]):
            self._sources[value] = self._sources.get(eqn.inputs[0], eqn.inputs[0])
        elif op.elementwise and eqn.inputs:
            found = [self._form(v) for v in eqn.inputs]
            depth = 1 + max(d for _, d in found)
            if depth <= _DEEPEST:
                params = bits(eqn.params) if eqn.params else ()
                self._forms[value] = self._number(op, params, *[f for f, _ in found]), depth
                self._computed.add(value)
        elif _is_element(eqn):
            self._forms[value] = self._number("element", eqn.inputs[0]), 0
        elif eqn.is_known:
            self._forms[value] = self._number("known", value.dtype), 0

    def _form(self, value: Value) -> tuple[int, int]:
        """Return the form of a number, and its depth."""
        value = self._sources.get(value, value)
        found = self._forms.get(value)
        if found is None:
            is_input = value not in self._definition
            key = ("input", value.dtype) if is_input else ("other", value)
            found = self._forms[value] = self._number(*key), 0
        return found

    def _number(self, *key: Any) -> int:
        return self._known.setdefault(key, len(self._known))

    def _vector(self, column: tuple[Value, ...]) -> Value:
        """Return the vector of numbers of one form."""
        column = tuple([self._sources.get(v, v) for v in column])
        found = self._vectors.get(column)
        if found is None:
            found = self._vectors[column] = self._compute(column)
            self.columns[found] = column
        return found

    def _compute(self, column: tuple[Value, ...]) -> Value:
        count, first = len(column), self._definition.get(column[0])
        self._near = first
        if column.count(column[0]) == count:
            if count == 1:
                return self._reshaped(column[0], 1)
            number = self._reshaped(column[0])
            return self._emit(broadcast, [number], shape=(count,), new_axes=(0,))
        if first is None:
            return self._emit(concat, [self._reshaped(v, 1) for v in column], axis=0)
        equations = [self._definition[v] for v in column]
        if column[0] in self._computed:
            operands = zip(*[e.inputs for e in equations], strict=True)
            vectors = [*map(self._vector, operands)]
            self._near = first
            return self._emit(require_primitive(first), vectors, **first.kwargs)
        if first.is_known:
            numbers = [e.number if e.array is None else e.array for e in equations]
            return self._constant(np.array(numbers, column[0].dtype).reshape(count))
        return self._elements(first.inputs[0], [_index(e) for e in equations])

    def _elements(self, array: Value, places: list[int]) -> Value:
        """Return elements of an array by their numbers in row-major order."""
        step, last = places[1] - places[0], places[-1]
        if step > 0 and places == [*range(places[0], last + 1, step)]:
            flat = self._reshaped(array, array.type.size)
            params = {"starts": (places[0],), "sizes": (len(places),), "steps": (step,)}
            return self._emit(slice_, [flat], **params)
        part = _rectangle(places, array.type.size)
        if part is None:
            flat = self._reshaped(array, array.type.size)
            return self._emit(gather, [flat, self._constant(np.array(places))], axis=0)
        row, is_turned, params = part
        table = self._reshaped(array, array.type.size // row, row)
        found = self._emit(slice_, [table], **params)
        found = self._emit(permute, [found], axes=(1, 0)) if is_turned else found
        return self._reshaped(found, len(places))

    def _constant(self, array: np.ndarray[Any, Any]) -> Value:
        op, params = constant_op(array)
        return self._emit(op, [], **params)

    def _reshaped(self, value: Value, *shape: int) -> Value:
        """Return the elements of a value in another shape."""
        return value if value.shape == shape else self._emit(reshape, [value], shape=shape)

    def _emit(self, op: Primitive[Any], operands: Sequence[Value], **params: Any) -> Value:
        """Make an equation with one result."""
        (type,) = op.infer(tuple([v.type for v in operands]), params)
        source = None if self._near is None else self._near.source
        found = Value(type)
        frozen = freeze_all(params.items())
        self._made.append(Equation(op, tuple(operands), frozen, (found,), source))
        return found


def _is_number(value: Value) -> bool:
    return all(isinstance(n, int) and n == 1 for n in value.shape)


def _is_element(eqn: Equation) -> bool:
    """Return whether an equation reads an element of an array of known shape."""
    is_slice = eqn.op.is_view and "starts" in eqn.kwargs
    return is_slice and all(isinstance(n, int) for n in eqn.inputs[0].shape)


def _index(eqn: Equation) -> int:
    """Return the number of the element that an equation reads, in row-major order."""
    found = 0
    for start, size in zip(eqn.kwargs["starts"], eqn.inputs[0].shape, strict=True):
        found = found * size + start
    return found


def _alternate(parts: Sequence[Sequence[int]]) -> bool:
    """Return whether parts of a stack take turns: the first has elements 0, 3, 6, ... of three."""
    count, size = len(parts), len(parts[0])
    turns = (list(places) == [*range(i, count * size, count)] for i, places in enumerate(parts))
    return count > 1 and all(turns)


def _rectangle(places: list[int], size: int) -> tuple[int, bool, dict[str, Any]] | None:
    """Return where elements are a part of a matrix: its row size, whether its columns are read
    one after the other, and the parameters of the slice; None for other elements."""
    array = np.array(places)
    step = places[1] - places[0]
    breaks = np.flatnonzero(np.diff(array) != step)
    if step <= 0 or not breaks.size:
        return None
    inner = int(breaks[0]) + 1
    if len(places) % inner:
        return None
    outer, jump = len(places) // inner, places[inner] - places[0]
    expected = places[0] + np.add.outer(np.arange(outer) * jump, np.arange(inner) * step)
    if jump <= 0 or jump == step or not np.array_equal(expected.ravel(), array):
        return None
    is_turned = step > jump
    row, along = max(step, jump), min(step, jump)
    rows, columns = (inner, outer) if is_turned else (outer, inner)
    first, column = divmod(places[0], row)
    if size % row or column + (columns - 1) * along >= row:
        return None
    return row, is_turned, {
        "starts": (first, column), "sizes": (rows, columns), "steps": (1, along)
    }  # fmt: skip
