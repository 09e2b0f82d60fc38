"""Shared padding: parts embedded in zeros become views of one padded array, for loops in C.

The gradient of a stencil is a sum of copies of one array, each embedded in zeros at another place.
All of these are slices of the array with enough zeros around it, which loops read at their offsets
without conditions. Slices and sums of padded values do without the zeros.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.lower.nests.short_axes import unroll_short_axes
from primgraph.ir.facts.choices import ADDS
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import Index, IndexMap, Place, RowMajor, axes_at
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import Shape
from primgraph.primitives.constants import full
from primgraph.primitives.elementwise import SIGNS, add, mul
from primgraph.primitives.linear_algebra.products import CONTRACTS
from primgraph.primitives.reductions import SUMS, reduce_sum
from primgraph.primitives.shapes import JOINED, reshape, slice_, slice_assign

# Maximum number of operations on an element that are repeated for each view.
_DEEP = 3


class _Part(NamedTuple):
    """A value embedded in zeros, and its start along each axis."""

    value: Value
    starts: Shape


def prepare_graph(graph: Graph) -> Graph:
    """Return `graph` for loops in C: with shared padding and short axes unrolled."""
    return unroll_short_axes(share_padding(graph))


def share_padding(graph: Graph) -> Graph:
    """Return `graph` with embedded parts as views of one array, and without needless padding."""
    if not any(_joins(eqn) or eqn.op.fact(CONTRACTS) for eqn in graph.body):
        return graph
    return _Sharer(graph).graph()


@final
class _Embedded:
    """The parts embedded in zeros, of values that the equations `made`."""

    def __init__(self, made: dict[Value, Equation]) -> None:
        self.made = made

    def single_part(self, value: Value) -> _Part | None:
        parts = self.parts_of(value)
        return parts[0] if len(parts) == 1 else None

    def parts_of(self, value: Value) -> list[_Part]:
        """Return the parts whose sum a value is, each embedded in zeros; empty if it is no such."""
        eqn = self.made.get(value)
        if eqn is None or any(type(n) is not int for n in value.shape):
            return []
        part = self.part_in_zeros(eqn)
        return [] if part is None else self.overlapping_parts(*part) or [part]

    def part_in_zeros(self, eqn: Equation) -> _Part | None:
        """Return the operand whose elements the result has, one beside the other, between zeros."""
        if not _joins(eqn):
            return None
        *whole, part = eqn.inputs
        if whole and not (len(whole) == 1 and self.is_zero(whole[0]) and _replaces_part(eqn)):
            return None
        shown = eqn.dependence(0, len(whole))
        if not isinstance(shown, IndexMap) or not shown.exact:
            return None
        starts = _starts(shown.result, shown.operand)
        return None if starts is None else _Part(part, starts)

    def is_zero(self, value: Value) -> bool:
        return str(self.number(value)) in ("0", "0.0")

    def number(self, value: Value) -> Any:
        """Return the number that all elements of a value equal, or None."""
        eqn = self.made.get(value)
        return None if eqn is None else eqn.number

    def overlapping_parts(self, value: Value, low: Shape) -> list[_Part]:
        """Return two parts that overlap along an axis, from the three pieces of their sum."""
        eqn = self.made.get(value)
        axis = None if eqn is None else eqn.held(JOINED)
        if eqn is None or axis is None or len(eqn.inputs) != 3:
            return []
        first, shared, last = eqn.inputs
        both = self.made.get(shared)
        if both is None or not both.op.fact(ADDS):
            return []
        ends = [self.bare(v, eqn) for v in (first, last)]
        pieces = [self.columns(v, axis) for v in (ends[0], *both.inputs, ends[1])]
        if any(piece is None for piece in pieces):
            return []
        (x, a), (p, b), (q, c), (y, d) = pieces  # type: ignore[misc]
        m, k, n = first.shape[axis], shared.shape[axis], last.shape[axis]
        if x.shape[axis] != m + k or y.shape[axis] != k + n or (a, d) != (0, k):
            return []
        moved = (*low[:axis], low[axis] + m, *low[axis + 1 :])
        if (p, b, q, c) == (x, m, y, 0):
            return [_Part(x, low), _Part(y, moved)]
        if (p, b, q, c) == (y, 0, x, m):
            return [_Part(y, moved), _Part(x, low)]
        return []

    def bare(self, value: Value, joined: Equation) -> Value | None:
        """Return a value without a zero that is added to it, as it is to parts outside the overlap.

        That makes -0.0 a 0.0. Without it the signs of zeros differ, as they may in derivatives.
        """
        eqn = self.made.get(value)
        if eqn is not None and eqn.op.fact(ADDS) and self.is_zero(eqn.inputs[1]):
            return eqn.inputs[0]
        is_derived = joined.source is not None and joined.source.is_derived
        return value if is_derived or value.dtype.kind in "iu" else None

    def columns(self, value: Value | None, axis: int) -> tuple[Value, int] | None:
        """Return the array of which a value is a slice along one axis, and the slice's start."""
        eqn = None if value is None else self.made.get(value)
        starts = None if eqn is None else _starts_of_slice(eqn)
        if value is None or eqn is None or starts is None:
            return None
        (x,) = eqn.inputs
        others = zip(*[s[:axis] + s[axis + 1 :] for s in (value.shape, x.shape)], strict=True)
        return (x, starts[axis]) if all(n == m for n, m in others) else None


@final
class _Sharer:
    """Rewriter of a graph; `shared` has the parts of values that become sums of views."""

    def __init__(self, graph: Graph) -> None:
        self.old, self.body = graph, list[Equation]()
        self.made = {v: eqn for eqn in graph.body for v in eqn.outputs}
        self.embedded = _Embedded(self.made)
        self.readers = Counter(graph.outputs)
        others = set(graph.outputs)
        for eqn in graph.body:
            self.readers.update(eqn.inputs)
            if not _is_elementwise(eqn):
                others.update(eqn.inputs)
        self.shared = {v: self.embedded.parts_of(v) for v in self.made if v not in others}
        self.roots = self.shared_roots()
        self.starts: dict[tuple[Value, Shape], set[Shape]] = defaultdict(set)
        for value, parts in self.shared.items():
            for x, starts in parts:
                self.starts[self.roots.get(x, x), value.shape].add(starts)
        # What is added to copies of an array is padded, too, if it has the same shape.
        several = {
            (x.shape, shape) for (x, shape), places in self.starts.items() if len(places) > 1
        }
        self.shared = {
            v: parts for v, parts in self.shared.items()
            if parts and all((part.value.shape, v.shape) in several for part in parts)
        }  # fmt: skip
        self.padded: dict[tuple[Value, Shape], _Part] = {}

    def shared_roots(self) -> dict[Value, Value]:
        """Return, for embedded values that are cheap to compute of one array, that array."""
        values = dict.fromkeys(part.value for parts in self.shared.values() for part in parts)
        roots = {x: self.root(x, _DEEP) for x in values}
        uses = Counter(roots.values())
        # An infinity times zero is no zero, and neither is a negative number times zero.
        with np.errstate(all="ignore"):
            return {
                x: y for x, y in roots.items()
                if uses[y] > 1 and x is not y and not any(self.at_zero(x, y).tobytes())
            }  # fmt: skip

    def root(self, value: Value, depth: int) -> Value:
        """Return the array of which a value is a sum of multiples, or itself."""
        eqn = self.made.get(value)
        if depth == 0 or eqn is None or not (eqn.op.fact(SIGNS) or _is_product(eqn)):
            return value
        number = self.embedded.number
        inner = {self.root(v, depth - 1) for v in eqn.inputs if number(v) is None}
        return inner.pop() if len(inner) == 1 else value

    def at_zero(self, value: Value, root: Value) -> Any:
        """Return a value where its root is zero."""
        eqn, dtype = self.made.get(value), value.type.dtype
        if value is root or eqn is None:
            return dtype.type(0)
        if eqn.number is not None:
            return dtype.type(eqn.number)
        return eqn.op.evaluate([self.at_zero(v, root) for v in eqn.inputs], eqn.kwargs)[0]

    def again(self, value: Value, root: Value, view: Value) -> Value:
        """Compute a value of a view of its root."""
        if value is root:
            return view
        eqn = self.made[value]
        if eqn.number is not None:
            return self.emit(eqn.op, eqn, **{**eqn.kwargs, "shape": view.shape})
        return self.emit(eqn.op, eqn, *[self.again(v, root, view) for v in eqn.inputs])

    def graph(self) -> Graph:
        for eqn in self.old.body:
            if len(eqn.outputs) != 1 or not self.replaced(eqn):
                self.body.append(eqn)
        graph = self.old
        body = backward_slice(self.body, graph.outputs)
        return Graph(graph.inputs, body, graph.outputs, graph.name, graph.form, graph.titles)

    def replaced(self, eqn: Equation) -> bool:
        """Append the equations that replace `eqn`, if there are any; return whether there are."""
        if eqn.output in self.shared:
            views = [self.view(part, eqn) for part in self.shared[eqn.output]]
            if len(views) == 1:
                last = self.body.pop()
                self.body.append(
                    Equation(last.op, last.inputs, last.params, eqn.outputs, eqn.source)
                )
            else:
                self.body.append(Equation(add, tuple(views), (), eqn.outputs, eqn.source))
            return True
        if eqn.op.fact(CONTRACTS):
            return self.summed(eqn)
        inner = self.made.get(eqn.inputs[0]) if eqn.inputs else None
        if inner is None or not _is_elementwise(inner) or self.readers[inner.output] > 1:
            return False
        starts = _starts_of_slice(eqn)
        if starts is not None:
            return self.without_padding(inner, _Part(eqn.output, starts), eqn, None)
        if eqn.op.fact(SUMS) and _is_product(inner):
            parts = [self.embedded.single_part(v) for v in inner.inputs]
            kept = set(range(len(inner.output.shape))).difference(eqn.kwargs["axes"])
            wanted = parts[0]
            if wanted is not None and all(
                wanted.value.shape[a] == inner.output.shape[a] for a in kept
            ):
                return self.without_padding(inner, wanted, eqn, eqn)
        return False

    def without_padding(
        self, inner: Equation, wanted: _Part, eqn: Equation, then: Equation | None
    ) -> bool:
        """Compute `inner` for a part only, as the result of `eqn`, or the operand of `then`."""
        parts = [self.embedded.single_part(v) for v in inner.inputs]
        numbers = [self.embedded.number(v) for v in inner.inputs]
        place, shape = wanted.starts, wanted.value.shape
        if not any(parts) or not all(
            # The product of an infinity and the zeros that a sum leaves out is NaN.
            number is not None and (then is None or np.isfinite(number))
            if part is None else (part.starts, part.value.shape) == (place, shape)
            for part, number in zip(parts, numbers, strict=True)
        ):  # fmt: skip
            return False
        operands = [
            part.value if part is not None
            else self.emit(self.made[v].op, eqn, **{**self.made[v].kwargs, "shape": shape})
            for v, part in zip(inner.inputs, parts, strict=True)
        ]  # fmt: skip
        if then is None:
            self.body.append(
                Equation(inner.op, tuple(operands), inner.params, eqn.outputs, inner.source)
            )
        else:
            value = self.emit(inner.op, inner, *operands, **inner.kwargs)
            self.body.append(Equation(eqn.op, (value,), eqn.params, eqn.outputs, eqn.source))
        return True

    def summed(self, eqn: Equation) -> bool:
        """Sum the products of computed elements in the loop that computes them."""
        if eqn.output.shape != (1, 1):
            return False
        made = [self.made.get(v) for v in eqn.inputs]
        values = [e.inputs[0] for e in made if e is not None and _is_reshape(e)]
        sources = [self.made.get(v) for v in values]
        if len(values) < 2 or not values[0].shape or values[0].shape != values[1].shape:
            return False
        padded = self.embedded.part_in_zeros
        if not any(e is not None and (_is_elementwise(e) or padded(e)) for e in sources):
            return False
        x, y = (self.embedded.single_part(v) for v in values)
        if x and y and (x.starts, x.value.shape) == (y.starts, y.value.shape):
            values = [x.value, y.value]
        axes = tuple(range(len(values[0].shape)))
        total = self.emit(reduce_sum, eqn, self.emit(mul, eqn, *values), axes=axes)
        params = freeze_all({"shape": (1, 1)}.items())
        self.body.append(Equation(reshape, (total,), params, eqn.outputs, eqn.source))
        return True

    def emit(self, op: Op, eqn: Equation, *inputs: Value, **params: Any) -> Value:
        """Append an equation of the source line of `eqn`; return its result."""
        (type,) = op.infer(tuple([v.type for v in inputs]), params)
        value = Value(type)
        made = Equation(op, inputs, freeze_all(params.items()), (value,), eqn.source)
        self.body.append(made)
        return value

    def view(self, part: _Part, eqn: Equation) -> Value:
        """Return the slice of a padded array that is the part embedded in zeros."""
        x, shape = self.roots.get(part.value, part.value), eqn.output.shape
        steps = (1,) * len(shape)
        if (x, shape) not in self.padded:
            places = list(zip(*self.starts[x, shape], strict=True))
            low = tuple(map(max, places))
            ends = [n - m - min(column) for n, m, column in
                    zip(shape, x.shape, places, strict=True)]  # fmt: skip
            whole = tuple([a + n + b for a, n, b in zip(low, x.shape, ends, strict=True)])
            dtype = x.type.dtype
            zeros = self.emit(full, eqn, value=dtype.type(0).item(), shape=whole, dtype=dtype)
            padded = self.emit(slice_assign, eqn, zeros, x, starts=low, steps=steps)
            self.padded[x, shape] = _Part(padded, low)
        padded, low = self.padded[x, shape]
        starts = tuple([a - s for a, s in zip(low, part.starts, strict=True)])
        view = self.emit(slice_, eqn, padded, starts=starts, sizes=shape, steps=steps)
        return self.again(part.value, x, view)


def _is_elementwise(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise


def _is_product(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.elementwise and eqn.op.linear == "each"


def _is_reshape(eqn: Equation) -> bool:
    return eqn.op.is_view and isinstance(eqn.dependence(0, 0), RowMajor)


def _joins(eqn: Equation) -> bool:
    """Return whether a result has the elements of operands, and zeros, and is no view."""
    return isinstance(eqn.op, Primitive) and eqn.op.moves and not eqn.op.is_view


def _replaces_part(eqn: Equation) -> bool:
    """Return whether the result is operand 0 with a part of it replaced."""
    shown = eqn.dependence(0, 0)
    return isinstance(shown, IndexMap) and shown.hole is not None


def _starts_of_slice(eqn: Equation) -> Shape | None:
    """Return where a slice begins whose elements stand one beside the other; None for others."""
    shown = eqn.dependence(0, 0) if eqn.op.is_view and not eqn.op.multiple else None
    return _starts(shown.operand, shown.result) if isinstance(shown, IndexMap) else None


def _starts(whole: tuple[Place, ...], part: tuple[Place, ...]) -> Shape | None:
    """Return the place in the whole of the first element of a part, if the part is contiguous."""
    if part != axes_at(range(len(whole))):
        return None
    starts = [p.start for v, p in enumerate(whole) if isinstance(p, Index) and p.variable == v]
    return tuple(starts) if len(starts) == len(whole) else None
