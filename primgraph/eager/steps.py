"""Steps: what a call of an operator does to tensors of some types, traced once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any, Never, TypeAlias, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen.cards.table import CARDS
from primgraph.errors import ArgumentError, InternalError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_open
from primgraph.ir.frontend.containers import Tree, put_together, taken_apart
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import bits, freeze
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType
from primgraph.operators.lazy_loading import functions
from primgraph.operators.variable import Variable
from primgraph.program.compile import compiled
from primgraph.transforms.loops.stacks import fills

Arrays: TypeAlias = Sequence[np.ndarray[Any, Any]]
_numbers = count()

# The line of what no line of the user's is known for.
NOWHERE = Source("<tensors>", 0)


class Step(ABC):
    """What gives a node from others: steps are made once, and told apart by their identity.

    `number` is that of the step in keys. `reaching` are the inputs along which a derivative of
    the result may go. Steps of one `family` on the same inputs are recorded together, and `place`
    says which of the results is this one's. One that `is_view` makes no elements. A step that
    `derives` asks for all that its inputs were computed from. One that is `whole` is not evaluated
    on its own, but within a graph.
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
        """What a message calls it."""

    @abstractmethod
    def record(self, builder: Builder, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of the family, in `builder`."""

    @abstractmethod
    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        """The result, from the arrays of the inputs."""


@final
class Traced(Step):
    """A graph of one output."""

    __slots__ = ("_meanings", "_operations", "_result", "graph")

    def __init__(self, graph: Graph) -> None:
        (output,) = graph.outputs
        super().__init__(output.type, reaching(graph)[0], self, 0)
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
        builder.add_all(self.graph.body, moved, partial(builder.copy, source=builder.source))
        return [moved[v] for v in self.graph.outputs]

    def evaluate(self, arrays: Arrays) -> np.ndarray[Any, Any]:
        """Equation by equation."""
        known = list(arrays)
        if not self._meanings:
            self._meanings = [_meaning(eqn) for eqn, *_ in self._operations]
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
    """One of many results of a graph, all of which are recorded together; for constants."""

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


# What some equations are computed by, by op, parameters and types.
_KEPT = 4096
_meanings: dict[Hashable, Callable[..., Any]] = {}


def _meaning(eqn: Equation) -> Callable[..., Any]:
    """What gives the results of an equation from its operands, to the bit as kernels do.

    That is the plain NumPy function where kernels call it, too. Others, such as sums and functions
    that NumPy does not have, are kernels of one equation. Loops whose stacks grow are interpreted,
    as kernels neither take nor give these.
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
    kernel = compiled(builder.graph(builder.copy(eqn, operands)))
    return kernel if eqn.op.multiple else lambda *arrays: kernel(*arrays)[0]


def evaluated(graph: Graph, arrays: Arrays) -> list[np.ndarray[Any, Any]]:
    """The results of a graph, equation by equation; with stacks that grow, by a kernel of all."""
    if any(fills(eqn) for eqn in graph.body):
        return [np.array(found) for found in compiled(graph)(*arrays)]
    known = dict(zip(graph.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for eqn in graph.body:
            found = _meaning(eqn)(*[known[v] for v in eqn.inputs])
            for value, result in zip(
                eqn.outputs, found if eqn.op.multiple else (found,), strict=True
            ):
                known[value] = np.asarray(result, value.dtype)
    return [np.array(known[v]) for v in graph.outputs]


def reaching(graph: Graph) -> list[tuple[int, ...]]:
    """For each output the positions of inputs on which it depends by floats, other than as a
    constant."""
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
    """The steps of one call, one for each array in what it returns, and the containers of these.

    `plain` is the step where there is one alone, and no view.
    """

    __slots__ = ("plain", "steps", "tree")

    def __init__(self, steps: Sequence[Step], tree: Tree | None) -> None:
        self.steps = tuple(steps)
        self.tree = tree
        self.plain = None if tree is not None or steps[0].is_view else steps[0]


@lru_cache(maxsize=4096)
def same(type: TensorType) -> Step:
    """The step that gives what it is given."""
    builder = Builder("same")
    return Traced(builder.graph([builder.input(type)]))


@lru_cache(maxsize=4096)
def as_argument(type: TensorType) -> Step:
    """The step that gives what it is given, to a function that derivatives are taken of."""
    builder = Builder("argument")
    return Traced(builder.graph([builder.input(type)]))


@lru_cache(maxsize=4096)
def constant(type: TensorType) -> Step:
    """The step that gives what it is given, as a constant for derivatives."""
    return traced(functions["stop_gradient"], [type], lambda one: (tuple(one), {})).steps[0]


@lru_cache(maxsize=4096)
def sum_of_two(type: TensorType) -> Step:
    """The step that adds two arrays of that type."""
    return traced(functions["add"], [type, type], lambda both: (tuple(both), {})).steps[0]


def traced(
    function: Callable[..., Any],
    types: Sequence[TensorType],
    call: Callable[[Iterator[Variable]], tuple[tuple[Any, ...], dict[str, Any]]],
) -> Call:
    """What `function` does to arrays of these types, given to it as `call` arranges them."""
    builder = Builder(getattr(function, "__name__", "f"))
    inputs = [builder.input(t) for t in types]
    with builder:
        args, kwargs = call(iter([Variable(builder, v) for v in inputs]))
        result = function(*args, **kwargs)
    if isinstance(result, Variable):
        return Call([Traced(builder.part(inputs, [result.value]))], None)
    tree, leaves = taken_apart(result, lambda item: isinstance(item, Variable))
    return Call([Traced(builder.part(inputs, [v.value])) for v in leaves], tree)


def together(call: Call, results: list[Any]) -> Any:
    """What the call returns, with these results."""
    return results[0] if call.tree is None else put_together(call.tree, iter(results))


def key_of(value: Any) -> Hashable:
    """What tells a plain argument from others: equal only for the same bits of the same type."""
    kind = type(value)
    if kind is slice:
        return (slice, key_of(value.start), key_of(value.stop), key_of(value.step))
    if kind is list or kind is tuple:
        return (kind, *map(key_of, value))
    if value is Ellipsis or value is None or kind is str:
        return (kind, value)
    try:
        return (kind, bits(freeze(value)))
    except ArgumentError:
        # Held by the key: the identity of what is gone may be that of another object.
        return (kind, value if callable(value) and isinstance(value, Hashable) else repr(value))
