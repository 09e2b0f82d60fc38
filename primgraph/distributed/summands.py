"""Functions and programs split into sums over samples, for evaluation by chunk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.base.locks import cached_property
from primgraph.derivatives.grad import forward_grad, grad
from primgraph.derivatives.matrices.jacobian import jacobian
from primgraph.errors import (
    ArgumentError,
    FeedError,
    MixedSamplesError,
    ShapeError,
    UnknownSizeError,
)
from primgraph.ir.builder import Builder
from primgraph.ir.dims import extent_at, names_in
from primgraph.ir.graph import ARRAY, Graph, Value
from primgraph.ir.primitive import recording
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import TensorType, declared_shape
from primgraph.operators import reshape, zeros_like
from primgraph.operators import sum as sum_
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable
from primgraph.primitives.shapes import broadcast
from primgraph.program.inputs import check_names, input_values, state_values
from primgraph.program.program import Program, program_of
from primgraph.program.trace import trace, with_flags
from primgraph.transforms.dataflow.batch_independence import Mixing
from primgraph.transforms.dataflow.sum_separability import Parts, cut_at_sums, split_samples
from primgraph.transforms.lower import lower

Array: TypeAlias = "np.ndarray[Any, Any]"

# Name of the symbolic size for the number of samples in functions.
ROWS = "rows"


@final
@dataclass(frozen=True)
class SplitGraph:
    """Graph over samples, split: its inputs are parameters, constants, numbers, then data.

    The numbers are the values of the symbolic sizes `extents` in the total number of samples;
    `data` is the number of inputs with samples. `raw` is the graph as traced.
    """

    raw: Graph
    parts: Parts
    extents: tuple[tuple[int, TensorType], ...]
    data: int

    def numbers(self, sizes: Mapping[str, int]) -> list[Array]:
        """Return the numbers for the total number of samples."""
        return [np.asarray(extent_at(n, sizes), type.dtype) for n, type in self.extents]


@final
class Summand:
    """Function of parameters and of samples, which are distributed over chunks.

    `params` are the arrays to differentiate by, with their names, `constants` other arrays that are
    common to all chunks. `draw` returns the graph for a number of samples, or for any number if
    None, and `apart` splits it.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        params: Sequence[Array],
        constants: Sequence[Array],
        size: str,
        draw: Callable[[int | None], Graph],
        apart: Callable[[Graph, Sequence[Value]], Parts | Mixing] = split_samples,
    ) -> None:
        self.name, self.names, self.size = name, tuple(names), size
        self.params, self.constants = list(params), list(constants)
        self._draw, self._apart = draw, apart
        self._drawn: dict[int | None, SplitGraph] = {}

    @cached_property
    def is_sized(self) -> bool:
        """Return whether one graph can be used for any number of samples."""
        try:
            self._drawn[None] = self._draw_parts(None)
        except UnknownSizeError:
            return False
        return True

    def graph_for_rows(self, rows: int) -> SplitGraph:
        """Return the graph for this many samples; a generic one if possible."""
        key = None if self.is_sized else rows
        found = self._drawn.get(key)
        if found is None:
            found = self._drawn[key] = self._draw_parts(rows)
            if key is not None and not _is_like(found, self._draw_parts(rows + 1)):
                raise ShapeError(
                    f"{self.name} computes with the number of its samples, which chunks do not "
                    "know",
                    hint="a mean is a sum, divided outside; or write it so that it takes any "
                    "number of samples",
                )
        return found

    def _draw_parts(self, rows: int | None) -> SplitGraph:
        raw = self._draw(rows)
        plain, extents = _add_size_inputs(
            lower(raw), len(self.params) + len(self.constants), self.size
        )
        first = len(self.params) + len(self.constants) + len(extents)
        found = self._apart(plain, plain.inputs[first:])
        if isinstance(found, Mixing):
            raise mixing_error(found)
        return SplitGraph(raw, found, tuple(extents), len(plain.inputs) - first)


def mixing_error(fault: Mixing) -> MixedSamplesError:
    """Return the error for results of chunks that cannot be combined."""
    source = fault.equation.source
    origin = [] if source is None else [f"written here:  {source}   {source.text}"]
    return MixedSamplesError(
        f"this is no sum over samples: {fault.equation.op.name} {fault.why}",
        origin=origin,
        hint="a chunk has some of the samples only; what is computed of all of them is computed "
        "of their sums, outside",
    )


def _is_like(one: SplitGraph, other: SplitGraph) -> bool:
    """Return whether graphs for different numbers of samples contain the same constants."""
    rests = str(one.parts.rest), str(other.parts.rest)
    return rests[0] == rests[1] and _numbers_in(one.raw) == _numbers_in(other.raw)


def _numbers_in(graph: Graph) -> list[tuple[str, Any]]:
    """Return the ops of a graph with the numbers in their parameters."""
    found = []
    for eqn in lower(graph).body:
        array = eqn.held(ARRAY)
        found.append((eqn.op.name, eqn.number if array is None else array))
    return found


def _add_size_inputs(
    graph: Graph, count: int, size: str
) -> tuple[Graph, list[tuple[int, TensorType]]]:
    """Return `graph` with inputs, after the first `count`, for the numbers of samples in it."""
    builder = Builder(graph.name)
    for value in graph.inputs[:count]:
        builder.share_input(value)
    numbers: dict[tuple[int, Any], Value] = {}
    for eqn in graph.body:
        if size in names_in(eqn.size):
            key = eqn.kwargs["size"], eqn.kwargs["dtype"]
            if key not in numbers:
                numbers[key] = builder.input(TensorType((), key[1]))
        elif any(_has_extent(body, size) for body in eqn.bodies):
            raise mixing_error(
                Mixing(eqn, "computes with the number of samples in a branch or a loop")
            )
    for value in graph.inputs[count:]:
        builder.share_input(value)
    moved: dict[Value, Value] = {}
    for eqn in graph.body:
        if size in names_in(eqn.size):
            number = numbers[eqn.kwargs["size"], eqn.kwargs["dtype"]]
            shape = eqn.output.shape
            if shape:
                with recording(builder):
                    number = broadcast(number, shape=shape, new_axes=tuple(range(len(shape))))
            moved[eqn.output] = number
            continue
        inputs = tuple([moved.get(v, v) for v in eqn.inputs])
        moved.update(zip(eqn.outputs, builder.copy(eqn, inputs), strict=True))
    outputs = [moved.get(v, v) for v in graph.outputs]
    plain = Graph(builder.inputs, builder.body, outputs, graph.name)
    return plain, [(n, TensorType((), dtype)) for n, dtype in numbers]


def _has_extent(graph: Graph, size: str) -> bool:
    waiting = [graph]
    while waiting:
        for eqn in waiting.pop().body:
            if size in names_in(eqn.size):
                return True
            waiting.extend(eqn.bodies)
    return False


# Construction of summands.


def function_summand(
    function: Callable[..., Any],
    params: Any,
    structure: tree.Structure,
    columns: Sequence[TensorType],
) -> Summand:
    """Return the summand of `function(params, data)`, or `function(params, *data)` for a tuple.

    Without parameters (None) it is `function(data)`.
    """
    if not callable(function):
        raise ArgumentError(f"a function or a program is needed, not {function!r:.60}")
    leaves, form = tree.flatten(params)
    if params is None:
        leaves = []
    arrays = [array_of(leaf) for leaf in leaves]
    given = [] if params is None else [tree.unflatten(form, arrays)]

    def draw(rows: int | None) -> Graph:
        data = tree.unflatten(structure, [_with_rows(rows or ROWS, t) for t in columns])
        unpacked = data if structure.kind is tuple else (data,)
        return trace(function, *given, *unpacked)

    name = getattr(function, "__name__", type(function).__name__)
    paths = [] if params is None else tree.paths_of(form, "params")
    return Summand(name, paths, arrays, [], ROWS, draw)


def _with_rows(rows: int | str, column: TensorType) -> TensorType:
    return TensorType(declared_shape((rows, *column.shape)), column.dtype)


def program_summand(
    program: Program,
    loss: Any,
    params: Mapping[str, Any] | Sequence[Variable] | None,
    data: Mapping[str, TensorType],
    feed: Mapping[str, Any],
) -> Summand:
    """Return the summand of a program's loss; inputs in `data` have samples, `feed` has the others.

    `params` are arrays by the names of parameters, or parameters. By default they are all trainable
    parameters that the loss depends on, with their current values.
    """
    target = program.variable(loss) if isinstance(loss, str) else loss
    if not isinstance(target, Variable) or program_of(target) is not program:
        raise ArgumentError(f"the loss is a variable of the program, or its name, not {loss!r:.60}")
    if target.size != 1:
        raise ShapeError(f"a loss has one element, not {target.type}")
    builder = program.builder
    body = builder.slice([target.value])
    used = {v for eqn in body for v in eqn.inputs} | {target.value}
    chosen = _parameters(program, params, used)
    inputs = [v for v in builder.inputs if v in used and v not in chosen]
    size = _size_of(program, data)
    wanted = [v.hint for v in inputs if v not in program.states]
    check_names(program, {**feed, **data}, [*wanted, *(n for n in data if n not in wanted)])
    lead = [program.inputs[name].value for name in data]
    others = [v for v in inputs if v not in lead]
    constants = input_values(program, others, feed)
    states = [program.states[v] for v in chosen]
    arrays = state_values(program, program.scope, states)
    if isinstance(params, Mapping):
        given = [array_of(a, v.dtype) for a, v in zip(params.values(), chosen, strict=True)]
        for array, value in zip(given, chosen, strict=True):
            if array.shape != value.shape:
                raise ShapeError(f"{value.hint} is {value.type}, not {array.shape}")
        arrays = [a.astype(v.dtype) for a, v in zip(given, chosen, strict=True)]
    graph = builder.part([*chosen, *others, *lead], [target.value])
    if builder.stopped:
        graph = with_flags(graph, builder)

    def draw(rows: int | None) -> Graph:
        return graph if rows is None else specialize_graph(graph, {size: rows})

    return Summand(program.name, [v.hint for v in chosen], arrays, constants, size, draw)


def step_of_program(
    program: Program, loss: Variable, data: Mapping[str, TensorType], feed: Mapping[str, Any]
) -> tuple[Summand, list[str]]:
    """Split a run of a program with its updates at the sums over samples.

    It computes the loss, and new values of the states whose names are returned. Its parameters are
    all states, with their current values.
    """
    builder, updates = program.builder, program.updates
    outputs = [loss.value, *updates.values()]
    _, ends = builder.computing(outputs)
    used = {v for eqn in builder.slice(outputs) for v in eqn.inputs}.union(ends)
    size = _size_of(program, data)
    states = [v for v in builder.inputs if v in program.states and (v in used or v in updates)]
    lead = [program.inputs[name].value for name in data]
    others = [v for v in builder.inputs if v in used and v not in states and v not in lead]
    wanted = [v.hint for v in (*others, *lead)]
    check_names(program, {**feed, **data}, wanted)
    constants = input_values(program, others, feed)
    known = [program.states[v] for v in states]
    arrays = state_values(program, program.scope, known)
    graph = builder.part([*states, *others, *lead], outputs)
    if builder.stopped:
        graph = with_flags(graph, builder)

    def draw(rows: int | None) -> Graph:
        return graph if rows is None else specialize_graph(graph, {size: rows})

    def split_graph(graph: Graph, wrt: Sequence[Value]) -> Parts | Mixing:
        found = cut_at_sums(graph, wrt)
        return found if isinstance(found, Mixing) else Parts(found.each, found.rest, frozenset())

    names = [v.hint for v in states]
    changed = [v.hint for v in updates]
    return Summand(program.name, names, arrays, constants, size, draw, split_graph), changed


def sums_of(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the split graph."""
    return graph


def _parameters(program: Program, params: Any, used: set[Value]) -> list[Value]:
    if params is None:
        chosen = [p.value for p in program.parameters() if p.value in used]
    else:
        found = [program.variable(p) if isinstance(p, str) else p for p in params]
        for given, variable in zip(params, found, strict=True):
            if not isinstance(variable, Variable) or variable.value not in program.states:
                raise ArgumentError(f"{given!r:.60} is no parameter of {program.name}")
        chosen = [v.value for v in found if v is not None]
    if not chosen:
        raise ArgumentError("the loss depends on no parameter that may be varied")
    return chosen


def _size_of(program: Program, data: Mapping[str, TensorType]) -> str:
    """Return the size that counts samples, the first axis of all inputs in `data`."""
    sizes: set[str] = set()
    for name, column in data.items():
        variable = program.inputs.get(name)
        if variable is None:
            raise FeedError(
                f"the program has no input {name!r}", hint=f"it has {', '.join(program.inputs)}"
            )
        shape = variable.shape
        names = names_in(shape[0]) if shape else frozenset()
        if len(names) != 1 or str(shape[0]) not in names:
            raise ShapeError(
                f"input {name!r} is {variable.type}, and its samples have to be any number",
                hint=f'declare it with a name for their number: pg.data("{name}", ("N", ...))',
            )
        if shape[1:] != column.shape or variable.dtype != column.dtype:
            raise FeedError(f"{name!r} is {variable.type}, and rows of the data are {column}")
        sizes |= names
    if len(sizes) != 1:
        raise ShapeError(
            f"inputs count samples by different names: {', '.join(sorted(sizes))}",
            hint="give their first extents one name",
        )
    return sizes.pop()


# Graphs evaluated for a chunk. Their inputs are parameters, constants, numbers, vectors, then data.


def value_alone(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of the sum."""
    with _Draft(drawn, graph) as draft:
        return draft.graph([], [draft.loss])


def with_gradient(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of the sum and its gradients by the first `count` inputs."""
    with _Draft(drawn, graph) as draft:
        params = draft.variables[:count]
        return draft.graph([], [draft.loss, *_gradients([draft.loss], params)])


def hessian_times(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of Hessian products with a vector, one array for each of `count` inputs."""
    with _Draft(drawn, graph) as draft:
        params = draft.variables[:count]
        vectors = draft.more([p.type for p in params])
        found = _tangents(_gradients([draft.loss], params), params, vectors)
        return draft.graph(vectors, found)


def gauss_newton_times(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of products of `J.T @ J` with a vector, for the Jacobian J of all
    outputs."""
    require_rows(drawn)
    with _Draft(drawn, graph) as draft:
        params = draft.variables[:count]
        vectors = draft.more([p.type for p in params])
        along = _tangents(draft.outputs, params, vectors)
        return draft.graph(vectors, _gradients(draft.outputs, params, along))


def rows_of(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of the outputs."""
    require_rows(drawn)
    with _Draft(drawn, graph) as draft:
        return draft.graph([], draft.outputs)


def jacobian_rows(drawn: SplitGraph, graph: Graph, count: int) -> Graph:
    """Return the graph of the derivatives of each output by the first `count` inputs."""
    require_rows(drawn)
    with _Draft(drawn, graph) as draft:
        found = jacobian(draft.outputs, draft.variables[:count])
        return draft.graph([], [block for row in found for block in row])


def require_rows(drawn: SplitGraph) -> None:
    """Raise `ShapeError` unless all outputs have one row per sample."""
    for i, type in enumerate(drawn.parts.each.output_types):
        if i not in drawn.parts.rows:
            raise ShapeError(
                f"result {i} of {drawn.raw.name} is {type}, and no row for each sample",
                hint="return what is computed of each sample, before any sum",
            )


@final
class _Draft:
    """Builder of a graph on which derivatives are recorded."""

    def __init__(self, drawn: SplitGraph, graph: Graph) -> None:
        self.builder = Builder(graph.name)
        self.inputs = [self.builder.input(v.type, v.hint) for v in graph.inputs]
        self.values = self.builder.inline(graph, self.inputs)
        self.data = len(graph.inputs) - drawn.data
        self.rows = drawn.parts.rows

    def __enter__(self) -> _Draft:
        self.builder.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.builder.__exit__()

    @property
    def variables(self) -> list[Variable]:
        return [Variable(self.builder, v) for v in self.inputs]

    @property
    def outputs(self) -> list[Variable]:
        return [Variable(self.builder, v) for v in self.values]

    @property
    def loss(self) -> Variable:
        """Return the only output, summed over its rows if it has any."""
        (found,) = self.outputs
        if found.ndim:
            return sum_(found) if 0 in self.rows else reshape(found, ())
        return found

    def more(self, types: Sequence[TensorType]) -> list[Variable]:
        return [Variable(self.builder, self.builder.input(t)) for t in types]

    def graph(self, more: Sequence[Variable], outputs: Sequence[Variable]) -> Graph:
        first, data = self.inputs[: self.data], self.inputs[self.data :]
        inputs = [*first, *(v.value for v in more), *data]
        return self.builder.part(inputs, [v.value for v in outputs])


def _gradients(
    outputs: Sequence[Variable],
    params: Sequence[Variable],
    seeds: Sequence[Variable] | None = None,
) -> list[Variable]:
    found = grad(outputs, list(params), seeds, allow_unused=True, materialize_grads=True)
    return [g for g in found if g is not None]


def _tangents(
    outputs: Sequence[Variable], params: Sequence[Variable], vectors: Sequence[Variable]
) -> list[Variable]:
    found: Any = forward_grad(list(outputs), list(params), list(vectors))
    return [zeros_like(y) if t is None else t for y, t in zip(outputs, found, strict=True)]
