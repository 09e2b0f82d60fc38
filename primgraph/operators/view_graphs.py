"""Views as graphs: the part of the base that a view shows, and writes through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import taken_apart
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.operators.call import on_handles
from primgraph.operators.variable import Variable, emit, emit_all, mannered
from primgraph.primitives import parts, shapes

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
    def of(cls, graph: Graph) -> ViewGraph | None:
        """Return the view of `graph`; None if an equation of it computes or repeats elements."""
        is_view = len(graph.inputs) == 1 and all(map(_shows_elements, graph.body))
        return cls(graph) if is_view else None

    @classmethod
    def traced(
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

        with builder, mannered(Variable):
            args, options = call(Variable(builder, x), adopt)
            found = function(*args, **options)
        _, results = taken_apart(found, lambda item: isinstance(item, Variable))
        return cls.of(builder.part([x], [results[number].value]))

    def part(self, array: Array) -> Array:
        """Apply the view to an array, sharing memory where NumPy would."""
        known = dict.fromkeys(self.graph.inputs, array)
        for eqn in self.graph.body:
            found = _seen(eqn, known[eqn.inputs[0]])
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
write_through = on_handles(lambda view, base, new: view.write(base, new))


def _shows_elements(eqn: Equation) -> bool:
    if eqn.op is shapes.broadcast:
        return eqn.inputs[0].type.size == eqn.outputs[0].type.size
    return eqn.op.is_view or eqn.op in (parts.real, parts.imag)


def _seen(eqn: Equation, x: Array) -> Any:
    """Return the result of an equation as NumPy's view of `x`, where the primitive would copy."""
    params = eqn.kwargs
    if eqn.op is shapes.broadcast:
        return np.broadcast_to(np.expand_dims(x, params["new_axes"]), params["shape"])
    if eqn.op is shapes.reverse:
        return np.flip(x, params["axes"])
    if eqn.op in (parts.real, parts.imag) and x.dtype.kind != "c":
        # An array with the memory of complex numbers, used only for its layout.
        return x
    assert isinstance(eqn.op, Primitive)
    return eqn.op.impl(x, **params)


def _put_back(eqn: Equation, k: int, x: Variable, new: Variable) -> Variable:
    """Return `x` after `new` was written to result `k` of a view equation."""
    op, params = eqn.op, eqn.kwargs
    if op is shapes.permute:
        axes = params["axes"]
        return emit(shapes.permute, new, axes=tuple(axes.index(i) for i in range(len(axes))))
    if op is shapes.reverse:
        return emit(shapes.reverse, new, **params)
    if op is shapes.reshape or op is shapes.broadcast:
        return emit(shapes.reshape, new, shape=x.shape)
    if op is shapes.slice_:
        return emit(shapes.slice_assign, x, new, starts=params["starts"], steps=params["steps"])
    if op is shapes.split:
        starts = [0] * x.ndim
        starts[params["axis"]] = sum(params["sizes"][:k])
        return emit(shapes.slice_assign, x, new, starts=tuple(starts), steps=(1,) * x.ndim)
    if op is parts.real:
        return emit(parts.complex_, new, emit(parts.imag, x))
    if op is parts.imag:
        return emit(parts.complex_, emit(parts.real, x), new)
    if new.shape != x.shape:
        raise ArgumentError(f"a view by {op.name} cannot be written to")
    return new
