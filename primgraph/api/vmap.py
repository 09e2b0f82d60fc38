"""Vectorisation: a function of one sample becomes a function of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, final, overload

from primgraph import tree
from primgraph.api.arguments import call_differentiated, parameter_names
from primgraph.api.call_in_world import in_program
from primgraph.api.tracing import result_variable, trace_function
from primgraph.api.transformed import Floats, P, R, Transformed
from primgraph.api.world import InProgram, OnTensors, as_tensor, is_array, world_of
from primgraph.base.grad_mode import enable_tracking
from primgraph.eager.inplace.adoption import stand_in_class
from primgraph.eager.replay import replay_graph
from primgraph.eager.tensor import family_of
from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.result_names import generated_name
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import active_recorder, recording
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.ir.types import TensorType
from primgraph.operators.call import handed_out
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.shape.shaping import moveaxis
from primgraph.operators.variable import Variable, handle_of
from primgraph.primitives.shapes import broadcast
from primgraph.program.program import belongs_to_program, program_of
from primgraph.program.trace import with_flags
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import dead_code


class Vectorized(Protocol):
    """Decorator of `vmap` with options. A number per sample becomes an array."""

    @overload
    def __call__(self, function: Callable[[float], float], /) -> Vmap[[Floats], Floats]: ...
    @overload
    def __call__(
        self, function: Callable[[float, float], float], /
    ) -> Vmap[[Floats, Floats], Floats]: ...
    @overload
    def __call__(self, function: Callable[P, float], /) -> Vmap[P, Floats]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Vmap[P, R]: ...


@overload
def vmap(
    function: Callable[[float], float],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Vmap[[Floats], Floats]: ...
@overload
def vmap(
    function: Callable[[float, float], float],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Vmap[[Floats, Floats], Floats]: ...
@overload
def vmap(
    function: Callable[P, float],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Vmap[P, Floats]: ...
@overload
def vmap(
    function: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Vmap[P, R]: ...
@overload
def vmap(*, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None) -> Vectorized: ...
@check_arguments
def vmap(
    function: Callable[..., Any] | None = None,
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Any:
    """Return a function that applies `function` to each sample of a batch.

    `in_axes` is the batch axis of the arguments; the function sees them without it. None marks
    arguments that all samples share. One entry applies to all arguments; a tuple or list has one
    for each positional argument, and an entry may be a container like the argument, or like an
    outer part of it. Keyword arguments have the batch along axis 0. `out_axes` is the batch axis of
    the results, in the same way; None marks results that are equal for all samples. Axes may be
    negative. `axis_size` is the number of samples, needed if no argument has a batch axis. Without
    a function, return a decorator: `@pg.vmap(in_axes=(0, None))`.

    The function is called once, with a variable for each array that has samples, and vectorized.
    Results are arrays, tensors or variables, as in `pg.grad`. Where Python asks for the number in a
    sample, the error names the line.

    Raises `ShapeError` for different numbers of samples, with the places of the arguments, and for
    axes that do not exist; `ArgumentError` for axes that fit no argument, and for values that are
    no arrays.

    >>> pg.vmap(lambda w, x: w @ x, in_axes=(None, 0))(np.array([1.0, 2.0]), np.eye(2))
    array([1., 2.])
    """
    if function is None:
        return partial(vmap, in_axes=in_axes, out_axes=out_axes, axis_size=axis_size)
    return Vmap(function, in_axes, out_axes, axis_size)


@final
class Vmap(Transformed[P, R]):
    """Function of a batch of samples; see `vmap`."""

    def __init__(
        self,
        function: Callable[..., Any],
        in_axes: Any = 0,
        out_axes: Any = 0,
        axis_size: int | None = None,
    ) -> None:
        super().__init__("vmap", function)
        for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
            for axis in tree.leaves(axes):
                if type(axis) is not int:
                    raise ArgumentError(f"vmap: {what} has integers and None, not {axis!r:.60}")
        self._axes = in_axes, out_axes, axis_size

    def __reduce__(self) -> tuple[Any, ...]:
        return Vmap, (self.function, *self._axes)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._result(args, kwargs)
        return result

    def _result(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        in_axes, out_axes, size = self._axes
        samples = _Samples.from_call(self.function, args, kwargs, in_axes, size)
        world = world_of(args, kwargs)
        if isinstance(world, InProgram):
            assert isinstance(world.recorder, Builder)
            inputs = [in_program(world.recorder, leaf) for leaf in samples.leaves]
            return world.convert_results(_record_batch(world.recorder, samples, inputs, out_axes))
        assert isinstance(world, OnTensors)
        found = [as_tensor(leaf) for leaf in samples.leaves]
        made = trace_function(
            "vmap",
            lambda variables: _record_batch(_active(), samples, variables, out_axes),
            [t.type for t in found],
            title=generated_name(self.function),
            kind=stand_in_class(family_of(found)),
        )
        nodes = [t.node for t in (*found, *made.tensors)]
        results = map(family_of(found), replay_graph(made.graph, nodes))
        return world.convert_results(tree.unflatten(made.structure, results))


def _active() -> Builder:
    recorder = active_recorder()
    assert isinstance(recorder, Builder)
    return recorder


@final
@dataclass(frozen=True, slots=True)
class _Samples:
    """Arguments of a call, in which some arrays have `size` samples.

    `given` are all leaves of the arguments, with the containers of `structure`. `axes` are their
    batch axes, or None; `leaves` are the arrays with samples.
    """

    function: Callable[..., Any]
    given: tuple[Any, ...]
    structure: tree.Structure
    axes: tuple[int | None, ...]
    leaves: tuple[Any, ...]
    size: int

    @staticmethod
    def from_call(
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        in_axes: Any,
        size: int | None,
    ) -> _Samples:
        found, structure = tree.flatten((args, dict(kwargs)))
        if isinstance(in_axes, tuple | list) and len(in_axes) != len(args):
            raise ArgumentError(
                f"vmap: in_axes has {len(in_axes)} entries for {len(args)} arguments by position"
            )
        by_position, by_name = structure.parts
        axes = tree.broadcast_prefix(in_axes, by_position, "vmap: in_axes") + [0] * tree.count(
            by_name
        )
        paths = _paths(function, structure)
        arrays, ranks = [], []
        for leaf, axis, path in zip(found, axes, paths, strict=True):
            if axis is None:
                continue
            array = _array(leaf, path)
            rank = len(array.shape)
            if not -rank <= axis < rank:
                raise ShapeError(
                    f"vmap: {path} is {TensorType(array.shape, array.dtype)}, and has no axis "
                    f"{axis} for samples",
                    hint="in_axes says which axis that is; None is for what all samples share",
                )
            arrays.append(array)
            ranks.append((path, axis, array.shape[axis]))
        return _Samples(
            function, tuple(found), structure, tuple(axes), tuple(arrays), _size(ranks, size)
        )

    def call(self, variables: Sequence[Variable]) -> Any:
        """Call the function with variables in place of arrays with samples."""
        waiting = iter(variables)
        pairs = zip(self.given, self.axes, strict=True)
        leaves = [leaf if axis is None else next(waiting) for leaf, axis in pairs]
        args, kwargs = tree.unflatten(self.structure, leaves)
        return call_differentiated(self.function, *args, **kwargs)


def _paths(function: Callable[..., Any], structure: tree.Structure) -> list[str]:
    """Return the names of the leaves of arguments for messages."""
    by_position, by_name = structure.parts
    names = parameter_names(function, len(by_position.parts))
    parts = [*zip(names, by_position.parts, strict=True)]
    parts += [(str(k), p) for k, p in zip(by_name.keys, by_name.parts, strict=True)]
    return [path for name, part in parts for path in tree.paths_of(part, name)]


def _array(leaf: Any, path: str) -> Any:
    if isinstance(leaf, Handle):
        return leaf
    if not is_array(leaf):
        raise ArgumentError(
            f"vmap: {path} is {type(leaf).__name__} {leaf!r:.60}, not an array",
            hint="in_axes has None for what all samples share",
        )
    return array_of(leaf)


def _size(found: Sequence[tuple[str, int, int]], given: int | None) -> int:
    """Return the number of samples; raises `ShapeError` if arrays differ in it."""
    sizes = {size for _, _, size in found} | ({given} if given is not None else set())
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise ArgumentError(
            "vmap: no argument has samples",
            hint="say with in_axes which axis counts them, or with axis_size how many there are",
        )
    listed = [f"{path} has {size} along axis {axis}" for path, axis, size in found]
    if given is not None:
        listed.append(f"axis_size is {given}")
    raise ShapeError(f"vmap: the numbers of samples differ: {', '.join(listed)}")


def _record_batch(
    builder: Builder, samples: _Samples, inputs: Sequence[Variable], out_axes: Any
) -> Any:
    """Record the function for all samples in `builder`, and return its results."""
    axes = [axis for axis in samples.axes if axis is not None]
    pairs = zip(inputs, axes, strict=True)
    along = [x if axis == 0 else moveaxis(x, axis, 0) for x, axis in pairs]
    with builder.scratch() as equations:
        arguments = [builder.argument(Value(_sample_type(x.type))) for x in along]
        builder.stopped.update([
            a for a, x in zip(arguments, along, strict=True) if x.value in builder.stopped
        ])  # fmt: skip
        with recording(builder), enable_tracking():
            result = samples.call([handle_of(builder, a) for a in arguments])
            leaves, structure = tree.flatten(result)
            paths = tree.paths_of(structure, "result")
            found = [
                result_variable("vmap", builder, leaf, path).value
                for leaf, path in zip(leaves, paths, strict=True)
            ]
    listed = tree.broadcast_prefix(out_axes, structure, "vmap: out_axes")
    targets = [*zip(listed, paths, strict=True)]
    graph = _graph(builder, equations, arguments, found)
    free = graph.inputs[: len(graph.inputs) - len(arguments)]
    builder.begin_call()
    values = _batch_results(builder, graph, [*free, *(x.value for x in along)], samples, targets)
    results = []
    for value, (axis, path) in zip(values, targets, strict=True):
        variable = handle_of(builder, value)
        if axis is not None and not -variable.ndim <= axis < variable.ndim:
            raise ShapeError(f"vmap: {path} is {variable.type}, and has no axis {axis} for samples")
        results.append(moveaxis(variable, 0, axis) if axis else variable)
    return tree.unflatten(structure, handed_out(results))


def _sample_type(type: TensorType) -> TensorType:
    """Return the type of one sample."""
    return type.with_shape(type.shape[1:])


def _graph(
    builder: Builder,
    equations: Sequence[Equation],
    arguments: Sequence[Value],
    results: Sequence[Value],
) -> Graph:
    """Return the recorded equations as a graph of primitives, from values of `builder` and the
    arguments."""
    made = {v for e in equations for v in e.outputs}
    _refuse_updates(builder, made)
    needed = backward_slice(equations, results)
    known = made.union(arguments)
    used = dict.fromkeys(v for e in needed for v in e.inputs)
    outer = [v for v in dict.fromkeys((*used, *results)) if v not in known]
    constants = [e for e in map(builder.definition, outer) if e is not None and not e.inputs]
    free = [v for v in outer if not any(v in e.outputs for e in constants)]
    graph = Graph([*free, *arguments], [*constants, *needed], results, builder.name)
    if not builder.stopped.isdisjoint(known):
        graph = with_flags(graph, builder)
        builder.stopped -= known
    return lower(graph)


def _refuse_updates(builder: Builder, made: set[Value]) -> None:
    """Raise `BuildError` if a function updates states, which all samples share."""
    some = next(iter(made), None)
    if some is None or not belongs_to_program(Variable(builder, some)):
        return
    program = program_of(Variable(builder, some))
    changed = [state for state, value in program.updates.items() if value in made]
    for state in changed:
        del program.updates[state]
    if changed:
        raise BuildError(
            f"vmap: the function changes the state {changed[0].hint!r}, which all samples share",
            hint="let it return what is new, and change the state outside",
        )


def _batch_results(
    builder: Builder,
    graph: Graph,
    inputs: Sequence[Value],
    samples: _Samples,
    targets: Sequence[tuple[int | None, str]],
) -> list[Value]:
    """Return the results of `graph`, whose last inputs have samples, for the whole batch.

    A result with axis None is shared by all samples. Raises `ArgumentError`, with the path of the
    result, if it depends on the sample.
    """
    count = len(graph.inputs) - len(samples.leaves)
    dependent = forward_slice(graph.body, graph.inputs[count:])
    for value, (axis, path) in zip(graph.outputs, targets, strict=True):
        if axis is None and value in dependent:
            raise ArgumentError(
                f"vmap: {path} depends on the sample, and out_axes has None for it",
                hint="out_axes says which axis of a result counts the samples",
            )
    shared = dead_code(graph.with_outputs([v for v in graph.outputs if v not in dependent]))
    each = dead_code(graph.with_outputs([v for v in graph.outputs if v in dependent]))
    many = clean_up(batch(each, samples.size, [None] * count + [0] * len(samples.leaves)))
    ones, others = (iter(builder.inline(g, inputs)) for g in (shared, many))
    found = []
    with recording(builder):
        for value, (axis, _) in zip(graph.outputs, targets, strict=True):
            if value in dependent:
                found.append(next(others))
                continue
            one = next(ones)
            shape = (samples.size, *one.shape)
            found.append(one if axis is None else broadcast(one, shape=shape, new_axes=(0,)))
    return found
