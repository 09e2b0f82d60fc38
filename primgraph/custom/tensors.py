"""Custom functions on tensors: the function and its rules run eagerly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from primgraph.base.user_lines import instruction
from primgraph.custom.declared import Declared, attach_rule
from primgraph.custom.definition import Call, pull_cotangents, push_tangents
from primgraph.custom.primitives import Static
from primgraph.custom.traced import TracedCall, TracedSlope
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.custom_vjp_node import held_step
from primgraph.eager.derivatives.gradient_nodes import gradients
from primgraph.eager.derivatives.reverse import holder_of
from primgraph.eager.node import CustomRuleCall, Node, array_node
from primgraph.eager.steps import Arrays, Step
from primgraph.eager.tensor import Tensor, family_of, tensor
from primgraph.errors import ArgumentError, DTypeError, MissingRuleError, PrimgraphError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import flatten_value
from primgraph.ir.frontend.signature import UNFIT
from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.operators.promotion import SCALARS
from primgraph.operators.variable import Variable


@final
class TensorCall(Call, CustomRuleCall):
    """Call on tensors, with their values at the time of the call."""

    def __init__(
        self, rule: Declared, static: Static, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> None:
        self.rule = rule
        self.definition = rule.definition
        self.static = static
        self._family = family_of(args)
        self._given = [a.node if isinstance(a, Tensor) else a for a in args]
        self.kwargs = kwargs
        self._computed: tuple[Node, ...] = ()
        self._floats: list[int] = []
        self._steps: dict[int, Step] = {}

    @property
    def name(self) -> str:
        """Name of the function, or of the class that declares it."""
        return self.rule.name.rpartition(".")[2]

    def run(self) -> Any:
        """Run the function; attach its custom derivative if gradients are tracked."""
        tracked = recording.is_on.get() and any(n.tracked for n in self._operands())
        with recording.set_grad_enabled(tracked):
            found, self.state = self.definition.begin(self.args, self.kwargs)
        self.tree, items = flatten_value(found, lambda item: isinstance(item, Tensor))
        leaves = [self._leaf(item) for item in items]
        self.types = tuple([t.type for t in leaves])
        if not tracked:
            return self.unflatten_results(leaves)
        constants = [id(t) for t in self.definition.constants(self.state)]
        self._floats = [
            i for i, t in enumerate(leaves) if t.type.is_inexact and id(t) not in constants
        ]
        self._computed = tuple([leaves[i].node for i in self._floats])
        shown = [t.detach() if t.requires_grad else t for t in leaves]
        for place, i in enumerate(self._floats):
            shown[i] = self._result(place)
        return self.unflatten_results(shown)

    def _leaf(self, item: Any) -> Tensor:
        if isinstance(item, Tensor):
            return item
        if isinstance(item, (Variable, str, bytes)) or not (
            isinstance(item, SCALARS) or hasattr(item, "__array__")
        ):
            raise ArgumentError(
                f"{self.definition.name} returned {item!r:.80}, not a tensor or a tuple of tensors"
            )
        return tensor(item)

    @property
    def args(self) -> Sequence[Any]:
        return [_tensor_of_node(a, self._family) if isinstance(a, Node) else a for a in self._given]

    def _operands(self) -> list[Node]:
        return [a for a in self._given if isinstance(a, Node)]

    def _result(self, place: int) -> Tensor:
        """Return one result, with the derivative of the rules."""
        inputs = (*self._computed, *self._operands())
        computed = self._computed[place]
        step = held_step(tuple([n.type for n in inputs]), len(self._computed), place)
        node = Node(computed.type, step, inputs, True, instruction(), computed.array)
        node.passed = self
        return self._family(node)

    def saved_array(self, kept: Any) -> Any:
        if kept in self._computed and kept not in self._operands():
            return self._result(self._computed.index(kept))
        return _tensor_of_node(kept, self._family)

    def note(self, rule: Callable[..., Any], values: Sequence[Any]) -> None:
        """Do nothing: rules are checked where they are traced."""

    def lift(self, array: Any) -> Any:
        return self._leaf(array)

    def zeros(self, type: TensorType) -> Any:
        return self._family(array_node(np.zeros(type.shape, type.dtype)))

    def pull(self, cotangents: Mapping[int, Node], *, tracked: bool) -> list[tuple[Node, Node]]:
        if self.definition.pulls is None:
            return self._transpose_tangent_rule(cotangents, tracked)
        by_leaf: list[Any] = [None] * len(self.types)
        for place, ct in cotangents.items():
            by_leaf[self._floats[place]] = _tensor_of_node(ct, self._family)
        with recording.set_grad_enabled(tracked):
            found = pull_cotangents(self, by_leaf)
        return [
            (a, ct.node)
            for a, ct in zip(self._given, found, strict=True)
            if ct is not None and isinstance(a, Node) and a.tracked
        ]

    def _transpose_tangent_rule(
        self, cotangents: Mapping[int, Node], tracked: bool
    ) -> list[tuple[Node, Node]]:
        """Apply the transpose of the tangent rule: the gradient by tangents, in which it is
        linear."""
        tangents = {
            i: array_node(np.zeros(a.type.shape, a.type.dtype), a.tracked)
            for i, a in enumerate(self._given)
            if isinstance(a, Node) and a.type.is_inexact
        }
        with recording.enable_grad():
            along = [
                _tensor_of_node(tangents[i], self._family) if i in tangents else None
                for i in range(len(self._given))
            ]
            found = push_tangents(self, along)
        ends = {p: found[self._floats[p]] for p in cotangents}
        outputs = [d.node for d in ends.values() if d is not None and d.node.tracked]
        seeds = [cotangents[p] for p, d in ends.items() if d is not None and d.node.tracked]
        wanted = {i: t for i, t in tangents.items() if t.tracked}
        if not outputs:
            return []
        parts = gradients(outputs, list(wanted.values()), seeds, tracked=tracked)
        return [(self._given[i], g) for i, g in zip(wanted, parts, strict=True) if g is not None]

    def step(self, node: Node) -> Step:
        assert node.step is not None
        place = node.step.place
        if not self._steps:
            call = self._trace_call()
            self._steps = _steps(call, self.rule, tuple([n.type for n in node.inputs]))
        return self._steps[place]

    def _trace_call(self) -> TracedCall:
        """Trace the same call; raise if the function needs numbers."""
        types = tuple([n.type for n in self._operands()])
        try:
            call = TracedCall(self.rule, self.definition, self.static, types)
            TracedSlope(call).rules()
        except (ShapeError, DTypeError):
            raise
        except UNFIT as error:
            told = error.message if isinstance(error, PrimgraphError) else str(error)
            raise MissingRuleError(
                f"{self.definition.name} cannot be traced, which this derivative needs: {told}",
                origin=error.origin if isinstance(error, PrimgraphError) else (),
                hint="backward and pg.grad call its rules with numbers, for one seed at a time",
            ) from error
        return call


@final
class Ruled(Step):
    """One result of a call, with its traced rules."""

    __slots__ = ("_call", "_results", "_rule")

    def __init__(
        self, rule: Declared, call: TracedCall, types: Sequence[TensorType], place: int
    ) -> None:
        results = len(call.floats)
        reaching = tuple(i for i in range(results, len(types)) if types[i].is_inexact)
        super().__init__(types[place], reaching, (Ruled, call), place)
        self._rule = rule
        self._call = call
        self._results = results

    def __str__(self) -> str:
        return f"{self._call.definition.name}, a custom function"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        computed, given = operands[: self._results], operands[self._results :]
        return attach_rule(builder, self._call, self._rule, computed, given)

    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        return arrays[self.place]


_KEPT = 1024
_known: dict[tuple[Any, ...], dict[int, Step]] = {}


def _steps(call: TracedCall, rule: Declared, types: tuple[TensorType, ...]) -> dict[int, Step]:
    """Return the steps of the results of a call, shared by calls with equal rules."""
    key = (TracedSlope(call).rules(), types)
    found = _known.get(key)
    if found is None:
        if len(_known) >= _KEPT:
            del _known[next(iter(_known))]
        found = _known[key] = {i: Ruled(rule, call, types, i) for i in range(len(call.floats))}
    return found


def _tensor_of_node(node: Node, family: type[Tensor]) -> Tensor:
    """Return the tensor that shows a node, or a new one."""
    holder = holder_of(node)
    return holder if isinstance(holder, Tensor) and holder.node is node else family(node)
