"""Steps: what an operator call does to tensors of given types, traced once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any, Never, TypeAlias, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen.ops.table import CARDS
from primgraph.errors import ArgumentError, InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.frontend.containers import Tree, flatten_value, unflatten_value
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits, freeze
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile_kernel
from primgraph.transforms.loops.stacks import fills

Arrays: TypeAlias = Sequence[np.ndarray[Any, Any]]
_numbers = count()

# Source of equations without a line of the user.
NOWHERE = Source("<tensors>", 0)


class Step(ABC):
    """Operation that computes a node from others. Steps are unique and compared by identity.

    `number` is the step in cache keys. `reaching` lists the inputs that a derivative of the result
    reaches. Steps of one `family` on the same inputs are recorded together, and `place` is the
    index of the result. With `is_view`, it copies no elements. With `derives`, it needs the tape of
    its inputs. With `whole`, it is evaluated within a graph only.
    """

    __slots__ = ("family", "is_view", "number", "place", "reaching", "type")

    derives = False
    whole = False

    def __init__(
        self, type: TensorType, reaching: Sequence[int], family: Hashable, place: int
    ) -> None:
        self.type = type
        self.reaching = reaching
        self.family = family
        self.place = place
        self.is_view = False
        self.number = next(_numbers)

    @abstractmethod
    def __str__(self) -> str:
        """Name for messages."""

    @abstractmethod
    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        """Record the results of the family in `builder`."""

    @abstractmethod
    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        """Compute the result from the arrays of the inputs."""


@final
class Traced(Step):
    """Graph with one output."""

    __slots__ = ("_meanings", "_operations", "_result", "graph")

    def __init__(self, graph: Graph) -> None:
        (output,) = graph.outputs
        super().__init__(output.type, differentiable_inputs(graph)[0], self, 0)
        self.graph = graph
        slots = {v: i for i, v in enumerate(graph.inputs)}
        self._operations = []
        for eqn in graph.body:
            operands = [slots[v] for v in eqn.inputs]
            for value in eqn.outputs:
                slots[value] = len(slots)
            dtypes = [v.dtype for v in eqn.outputs]
            self._operations.append((eqn, operands, dtypes, eqn.op.multiple))
        self._meanings: list[Callable[..., Any]] = []
        self._result = slots[output]
        self.is_view = len(graph.inputs) == 1 and all(e.op.is_view for e in graph.body)

    def __str__(self) -> str:
        operands = " and ".join(str(v.type) for v in self.graph.inputs)
        return f"{self.graph.name} of {operands}" if operands else self.graph.name

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        moved = dict(zip(self.graph.inputs, operands, strict=True))
        builder.add_all(self.graph.body, moved, builder.source)
        return [moved[v] for v in self.graph.outputs]

    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        """Evaluate equation by equation."""
        known = list(arrays)
        if not self._meanings:
            self._meanings = [_step_function(eqn) for eqn, *_ in self._operations]
        for meaning, (_, operands, dtypes, multiple) in zip(
            self._meanings, self._operations, strict=True
        ):
            found = meaning(*[known[i] for i in operands])
            for result, dtype in zip(found if multiple else (found,), dtypes, strict=True):
                same = type(result) is np.ndarray and result.dtype is dtype
                known.append(result if same else np.asarray(result, dtype))
        return known[self._result]


@final
class Part(Step):
    """One of many results of a graph that are recorded together; for constants."""

    __slots__ = ("graph",)

    whole = True

    def __init__(self, graph: Graph, place: int) -> None:
        super().__init__(graph.outputs[place].type, (), graph, place)
        self.graph = graph

    def __str__(self) -> str:
        return f"result {self.place} of {self.graph.name}"

    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        return builder.inline(self.graph, operands, shared=True)

    def evaluate(self, arrays: Arrays) -> Never:
        raise InternalError("one of many results is computed with the others")


# Implementations of equations, by op, parameters and types.
_KEPT = 4096
_meanings: dict[Hashable, Callable[..., Any]] = {}


def _step_function(eqn: Equation) -> Callable[..., Any]:
    """Return the function that computes an equation, bit for bit like kernels.

    It is the plain NumPy function if kernels call it, too. Others, such as sums and functions that
    NumPy lacks, are kernels of one equation. Loops with growing stacks are interpreted, as such
    stacks cannot be passed to kernels.
    """
    op = eqn.op
    if op.has_bodies and any(is_open(v.shape) for v in (*eqn.inputs, *eqn.outputs)):
        assert isinstance(op, Primitive)
        return partial(op.impl, **eqn.kwargs)
    if isinstance(op, Primitive):
        rounds = op.has_bodies or (
            eqn.outputs[0].type.is_inexact and not (op.formal or op.moves or op.literal)
        )
        if not rounds or (op in CARDS and CARDS[op].ufunc):
            return partial(op.impl, **eqn.kwargs) if eqn.params else op.impl
    key = (eqn.op, bits(eqn.params), tuple([v.type for v in eqn.inputs]))
    found = _meanings.get(key)
    if found is None:
        if len(_meanings) >= _KEPT:
            del _meanings[next(iter(_meanings))]
        found = _meanings[key] = _kernel(eqn)
    return found


def _kernel(eqn: Equation) -> Callable[..., Any]:
    builder = Builder(eqn.op.name, source=eqn.source or NOWHERE)
    operands = tuple([builder.input(v.type) for v in eqn.inputs])
    kernel = compile_kernel(builder.graph(builder.copy(eqn, operands)))
    return kernel if eqn.op.multiple else lambda *arrays: kernel(*arrays)[0]


def evaluate_graph(graph: Graph, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    """Evaluate a graph equation by equation; with growing stacks, by one kernel."""
    if any(fills(eqn) for eqn in graph.body):
        return [np.array(found) for found in compile_kernel(graph)(*arrays)]
    known = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for eqn in graph.body:
            found = _step_function(eqn)(*[known[v] for v in eqn.inputs])
            for value, result in zip(
                eqn.outputs, found if eqn.op.multiple else (found,), strict=True
            ):
                known[value] = np.asarray(result, value.dtype)
    return [np.array(known[v]) for v in graph.outputs]


def differentiable_inputs(graph: Graph) -> list[tuple[int, ...]]:
    """Return, for each output, the inputs that it depends on differentiably."""
    known: dict[Value, int] = {v: 1 << i for i, v in enumerate(graph.inputs) if v.type.is_inexact}
    for eqn in graph.body:
        reached = 0
        if not eqn.op.stops:
            for value in eqn.inputs:
                reached |= known.get(value, 0)
        if reached:
            known.update((v, reached) for v in eqn.outputs if v.type.is_inexact)
    places = range(len(graph.inputs))
    return [tuple([i for i in places if known.get(v, 0) >> i & 1]) for v in graph.outputs]


@final
class Call:
    """Steps of one call, one per array in its result, and the containers of the result.

    `plain` is the step if there is only one, and it is not a view. `shares` says that results may
    share elements with an argument.
    """

    __slots__ = ("plain", "shares", "steps", "tree")

    def __init__(self, steps: Sequence[Step], tree: Tree | None) -> None:
        self.shares = False
        self.steps = tuple(steps)
        self.tree = tree
        self.plain = None if tree is not None or steps[0].is_view else steps[0]


@lru_cache(maxsize=4096)
def same(type: TensorType) -> Step:
    """Return the identity step."""
    builder = Builder("same")
    return Traced(builder.graph([builder.input(type)]))


@lru_cache(maxsize=4096)
def as_argument(type: TensorType) -> Step:
    """Return the identity step for arguments of a function that is being differentiated."""
    builder = Builder("argument")
    return Traced(builder.graph([builder.input(type)]))


@lru_cache(maxsize=4096)
def constant(type: TensorType) -> Step:
    """Return the identity step that stops derivatives."""
    return trace_call(functions["stop_gradient"], [type], lambda one: (tuple(one), {})).steps[0]


@lru_cache(maxsize=4096)
def sum_of_two(type: TensorType) -> Step:
    """Return the step that adds two arrays of a type."""
    return trace_call(functions["add"], [type, type], lambda both: (tuple(both), {})).steps[0]


def trace_call(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    call: Callable[[Iterator[Variable]], tuple[tuple[Any, ...], dict[str, Any]]],
) -> Call:
    """Trace `function` on these types; `call` builds its arguments from variables."""
    builder = Builder(getattr(function, "__name__", "f"))
    inputs = [builder.input(t) for t in types]
    with builder:
        args, kwargs = call(iter([Variable(builder, v) for v in inputs]))
        result = function(*args, **kwargs)
    if isinstance(result, Variable):
        return Call([Traced(builder.part(inputs, [result.value]))], None)
    tree, leaves = flatten_value(result, lambda item: isinstance(item, Variable))
    return Call([Traced(builder.part(inputs, [v.value])) for v in leaves], tree)


def assemble_result(call: Call, results: list[Any]) -> Any:
    """Return the result of the call with these leaves."""
    return results[0] if call.tree is None else unflatten_value(call.tree, iter(results))


# Classes of hashable objects without changes, which are equal only if they mean the same.
constant_classes: set[type] = {bool, int, str, type(None), type(Ellipsis)}


def key_of(value: Any) -> Hashable:
    """Return the cache key of a plain argument: equal only for equal bits and types."""
    kind = type(value)
    if kind in constant_classes:
        return (kind, value)
    if kind is slice:
        return (slice, key_of(value.start), key_of(value.stop), key_of(value.step))
    if kind is list or kind is tuple:
        return (kind, *map(key_of, value))
    try:
        return (kind, bits(freeze(value)))
    except ArgumentError:
        if callable(value) and isinstance(value, Hashable):
            # The key holds the object: the id of a deleted object may be reused.
            return (kind, value)
        # What an object of another kind holds is unknown: no other call is equal to this one.
        return (kind, object())
