"""Views as graphs: the part of the base that a view shows, and writes through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import flatten_value
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import Index, view_map
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import Shape, TensorType
from primgraph.ir.views import Expand, Permute, Reshape, Slice, View
from primgraph.operators.call import handle_operator
from primgraph.operators.variable import Variable, emit, emit_all, use_variable_class
from primgraph.primitives import parts, shapes
from primgraph.primitives.parts import COMPONENT

Array: TypeAlias = np.ndarray[Any, Any]
Arguments: TypeAlias = tuple[Sequence[Any], Mapping[str, Any]]
Call: TypeAlias = Callable[[Variable, Callable[[Variable], Variable]], Arguments]


@final
@dataclass(frozen=True, slots=True)
class ViewGraph:
    """Graph of one input and one output that consists of view operations.

    Real and imaginary parts count as views: NumPy's are, and can be written to.
    """

    graph: Graph

    @classmethod
    def from_graph(cls, graph: Graph) -> ViewGraph | None:
        """Return the view of `graph`; None if an equation of it computes or repeats elements."""
        is_view = len(graph.inputs) == 1 and all(map(_shows_elements, graph.body))
        return cls(graph) if is_view else None

    @classmethod
    def trace_view(
        cls, function: Callable[..., Any], call: Call, base: TensorType, number: int
    ) -> ViewGraph | None:
        """Trace `function` for its result `number`; None if that is not a view of `base` only.

        `call` creates the arguments from the variable for the base and a function that adds other
        variables to the trace.
        """
        builder = Builder(function.__name__, expands=lambda op: True)
        x = builder.input(base)

        def adopt(other: Variable) -> Variable:
            return Variable(builder, builder.input(other.type))

        with builder, use_variable_class(Variable):
            args, options = call(Variable(builder, x), adopt)
            found = function(*args, **options)
        _, results = flatten_value(found, lambda item: isinstance(item, Variable))
        return cls.from_graph(builder.part([x], [results[number].value]))

    def part(self, array: Array) -> Array:
        """Apply the view to an array, sharing memory where NumPy would."""
        known = dict.fromkeys(self.graph.inputs, array)
        for eqn in self.graph.body:
            found = _view_of_equation(eqn, known[eqn.inputs[0]])
            known.update(zip(eqn.outputs, found if eqn.op.multiple else (found,), strict=True))
        return known[self.graph.outputs[0]]

    def write(self, base: Variable, new: Variable) -> Variable:
        """Return `base` with the elements of `new` where the view shows it."""
        known = dict(zip(self.graph.inputs, (base,), strict=True))
        for eqn in self.graph.body:
            x = known[eqn.inputs[0]]
            results = emit_all(eqn.op, x, **eqn.kwargs) if eqn.op.multiple else None  # type: ignore[arg-type]
            for i, value in enumerate(eqn.outputs):
                known[value] = (
                    emit(eqn.op, x, **eqn.kwargs) if results is None else results[i]  # type: ignore[arg-type]
                )
        return self._back(known, new)

    def _back(self, known: Mapping[Value, Variable], new: Variable) -> Variable:
        target = self.graph.outputs[0]
        for eqn in reversed(self.graph.body):
            if target in eqn.outputs:
                k = eqn.outputs.index(target)
                new = _put_back(eqn, k, known[eqn.inputs[0]], new)
                target = eqn.inputs[0]
        return new


# Write through a view: an unnamed operator.
write_through = handle_operator(lambda view, base, new: view.write(base, new))


def _shows_elements(eqn: Equation) -> bool:
    """Return whether elements of the result are elements of the operand, each at most once."""
    if not eqn.op.is_view:
        return eqn.op.fact(COMPONENT) is not None
    repeats = isinstance(_view(eqn, 0), Expand | None)
    return not repeats or eqn.inputs[0].type.size == eqn.outputs[0].type.size


def _view(eqn: Equation, k: int) -> View | None:
    assert isinstance(eqn.op, Primitive)
    return eqn.op.seen(k, eqn.inputs[0].type, eqn.kwargs)


def _view_of_equation(eqn: Equation, x: Array) -> Any:
    """Return the result of an equation as NumPy's view of `x`, where the primitive would copy."""
    if not eqn.op.is_view:
        assert isinstance(eqn.op, Primitive)
        # An array with the memory of complex numbers is used only for its layout.
        return x if x.dtype.kind != "c" else eqn.op.impl(x)
    shown = [_apply_view(_view(eqn, k), x, value.shape) for k, value in enumerate(eqn.outputs)]
    return shown if eqn.op.multiple else shown[0]


def _apply_view(how: View | None, x: Array, shape: Shape) -> Array:
    match how:
        case Reshape():
            return x.reshape(shape)
        case Permute(axes):
            return x.transpose(axes)
        case Slice(ranges):
            return x[tuple([slice(*ends) for ends in ranges])]
        case Expand(new):
            x = x[tuple([None if is_new else slice(None) for is_new in new])]
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _put_back(eqn: Equation, k: int, x: Variable, new: Variable) -> Variable:
    """Return `x` after `new` was written to result `k` of a view equation."""
    put = eqn.op.fact(COMPONENT)
    if put is not None:
        real, imag = (emit(part, x) for part in (parts.real, parts.imag))
        return emit(parts.complex_, *put(new, real, imag))
    match _view(eqn, k):
        case Permute(axes):
            return emit(shapes.permute, new, axes=tuple(axes.index(i) for i in range(len(axes))))
        case Slice() as how:
            return _put_slice(how, x, new)
    return emit(shapes.reshape, new, shape=x.shape)


def _put_slice(how: Slice, x: Variable, new: Variable) -> Variable:
    places = [p for p in view_map(how, x.shape, new.shape).operand if isinstance(p, Index)]
    starts, steps = (tuple(ends) for ends in zip(*map(_start_and_step, places), strict=True))
    if new.shape == x.shape:
        return emit(shapes.reverse, new, axes=tuple(a for a, by in enumerate(steps) if by < 0))
    return emit(shapes.slice_assign, x, new, starts=starts, steps=steps)


def _start_and_step(place: Index) -> tuple[int, int]:
    return place.start, place.terms[0][1]
