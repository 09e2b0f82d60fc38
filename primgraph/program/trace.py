"""Tracing: from a function written with primgraph's operators to a graph."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from primgraph.base.frames import shorten_tracebacks
from primgraph.base.grad_mode import enable_tracking
from primgraph.base.user_lines import Source
from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import is_extent, parse_extent
from primgraph.ir.frontend.containers import (
    LEAF,
    Form,
    Tree,
    flatten_value,
    names,
    open_container,
    unflatten_value,
)
from primgraph.ir.frontend.result_names import UNTITLED, generated_name
from primgraph.ir.frontend.return_names import return_names
from primgraph.ir.frontend.signature import call_user_function, check_arguments
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import lookup
from primgraph.ir.types import TensorType, as_dtype, declared_shape
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import named_function
from primgraph.operators.promotion import SCALARS, array_of, lift
from primgraph.operators.variable import Variable, use_variable_class

# NumPy's maximum number of axes: more deeply nested lists are not arrays.
_MOST_AXES = 64


@check_arguments
def spec(shape: Any, dtype: Any = None) -> TensorType:
    """Return the type of an array: its shape, and its dtype or the default dtype.

    A symbolic size has a name: `spec(("N", 3))`.

    Raises `ArgumentError` for what is no shape, `ShapeError` for a negative size, `DTypeError` for
    an unsupported dtype.

    >>> pg.spec((2, "N"), "float32")
    f32[2,N]
    """
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    return TensorType(declared_shape(shape), chosen)


@check_arguments
def dim(text: str) -> int:
    """Return the symbolic size that `text` describes: a name such as "N", or an expression.

    Use it wherever sizes stand, in `reshape`, `zeros`, `arange` and slices, and in arithmetic with
    arrays, where it counts as an integer. Expressions are such as "2*N+1", "(N+1)//2", "max(N,3)".
    Raises `LoadError` for other texts.

    >>> pg.dim("N") + 1
    N+1
    """
    return parse_extent(text)


def modules_named(through: Sequence[ModuleType]) -> tuple[str, ...]:
    """Return the names of the modules whose functions are traced into.

    Raises `ArgumentError` for an object that is not a module.
    """
    listed = tuple(through)
    for module in listed:
        if not isinstance(module, ModuleType):
            raise ArgumentError(
                f"through is a list of modules, not of {type(module).__name__} {module!r:.60}"
            )
    return tuple([module.__name__ for module in listed])


@overload
def trace(
    function: Callable[..., Any],
    /,
    *specs: Any,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
    **named: Any,
) -> Graph: ...
@overload
def trace(function: Handle | npt.NDArray[Any], /, *specs: Any, **named: Any) -> Variable: ...
@check_arguments
def trace(
    function: Any,
    /,
    *specs: Any,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
    **named: Any,
) -> Graph | Variable:
    """Return the graph of `function`, called once with a variable for each of `specs`.

    A spec is a result of `spec`, a tuple of integers (the shape of an array of the default dtype),
    or an example array, of which only shape and dtype count. It may also be a dict, list, tuple,
    named tuple, dataclass or registered container of these, or None. Other lists and tuples of
    numbers are example arrays. Keyword specs, `named`, belong to the parameters of these names.

    A function written for NumPy is traced unchanged: a copy of it uses the names of
    `primgraph.numpy`, and so do the functions of yours that it calls. Arrays may be assigned to.
    Functions of the modules in `through`, which may be of installed packages, are followed too.
    `rebind=False` calls the function itself.

    The function returns a variable, or a container of variables. Inputs have the names of the
    parameters, with the keys that lead to them. The graph keeps the containers, and its kernel
    takes and returns them.

    Raises `ArgumentError` if the function returns anything else. Warns with `TracingWarning` of
    random numbers of NumPy and Python and of clocks: the graph keeps what they gave.

    For an array, a variable or a tensor, `trace` is NumPy's function, the sum of a diagonal:
    `pg.trace(x, offset=0, axis1=0, axis2=1, dtype=None)`.

    >>> print(pg.trace(lambda x: pg.sum(x * x), pg.spec(3)))
    graph f(%x: f64[3]) {
      %0: f64[3] = mul(%x, %x)
      %1: f64[] = reduce_sum(%0, axes=(0,))
      return %1
    }
    """
    if isinstance(function, Handle | np.ndarray):
        summed: Variable = named_function("trace")(function, *specs, **named)
        return summed
    if not callable(function):
        raise ArgumentError(
            f"trace: function is a function, not {type(function).__name__} {function!r:.60}"
        )
    return _trace_function(function, specs, named, modules_named(through) if rebind else None)


def _trace_function(
    function: Callable[..., Any],
    specs: Sequence[Any],
    named: Mapping[str, Any],
    through: Any,
) -> Graph:
    """Return the graph of a function; without `through` the function is called as it is."""
    name = generated_name(function)
    rooms = importlib.import_module("primgraph.numpy.rebound")
    written, kind = function, Variable
    if through is not None:
        written, kind = rooms.traceable(function, through)
    builder = Builder(name if name.isidentifier() else "f")
    builder.owner = "function"
    builder.written = True
    shorten_tracebacks()
    titles = [*_parameter_names(function, len(specs)), *named]
    examples = zip(titles, [*specs, *named.values()], strict=True)
    arguments, given = _arguments(builder, kind, examples)
    users = inspect.unwrap(function)
    watching = rooms.warn_of_randomness(name, partial(rooms.referenced_names, users), users)
    with watching, builder, use_variable_class(kind), enable_tracking():
        keywords = dict(zip(named, given[len(specs) :], strict=True))
        result = call_user_function(written, *given[: len(specs)], **keywords)
        tree, found = results_of(builder.name, result)
        values = [v.value for v in found]
    builder.ended = True
    form = Form(tuple(arguments), tree)
    graph = _name_results(builder.part(builder.inputs, values, form=form), function)
    return with_flags(graph, builder) if builder.stopped else graph


def _name_results(graph: Graph, function: Callable[..., Any]) -> Graph:
    """Return the graph whose titles have the names that `function` returns its results by."""
    assert graph.form is not None
    returned = return_names(function, graph.form.results)
    if not any(returned):
        return graph
    titles = graph.titles or (UNTITLED,) * len(returned)
    pairs = zip(titles, returned, strict=True)
    return graph.titled(tuple([title._replace(name=name) for title, name in pairs]))


def _arguments(
    builder: Builder, kind: type[Variable], examples: Iterable[tuple[str, Any]]
) -> tuple[list[tuple[str, Any]], list[Any]]:
    """Add inputs for examples of arguments; return the containers by name, and the arguments."""
    arguments, given = [], []
    for title, example in examples:
        tree, leaves = _flatten_example(example)
        types = [example_type(leaf) for leaf in leaves]
        pairs = zip(types, names(tree, title), strict=True)
        inputs = [builder.input(t, free_name(builder, n)) for t, n in pairs]
        arguments.append((title, tree))
        given.append(unflatten_value(tree, iter([kind(builder, v) for v in inputs])))
    return arguments, given


def with_flags(graph: Graph, traced: Builder) -> Graph:
    """Return `graph` with `stop_gradient` flags as equations, which transforms see."""
    builder, stop = Builder(graph.name), lookup("stop_gradient")
    moved: dict[Value, Value] = {}

    def hold(value: Value, source: Source | None) -> None:
        if value in traced.stopped:
            builder.source = source
            (moved[value],) = builder.emit(stop, [moved.get(value, value)], {})

    for value in graph.inputs:
        builder.share_input(value)
        hold(value, traced.declared_at.get(value))
    for eqn in graph.body:
        builder.add_all([eqn], moved, shared=True)
        if not eqn.op.stops:
            for value in eqn.outputs:
                hold(value, eqn.source)
    outputs = [moved.get(v, v) for v in graph.outputs]
    return Graph(graph.inputs, builder.body, outputs, graph.name, graph.form, graph.titles)


def free_name(builder: Builder, name: str) -> str:
    """Return `name`, extended if an input has it: dotted keys may clash with container paths."""
    while name in builder.names:
        name += "_"
    return name


def _flatten_example(example: Any) -> tuple[Tree, list[Any]]:
    """Flatten an argument of `trace` into its containers and the examples of arrays."""
    return (LEAF, [example]) if is_example(example, 1) else flatten_value(example, is_example)


def is_example(item: Any, depth: int = 0) -> bool:
    """Return whether an argument of `trace` is one array: a type, or nested lists of numbers.

    At depth 0, in a container, an empty list is a container; deeper it is an array without
    elements.
    """
    if type(item) not in (list, tuple):
        return isinstance(item, TensorType)
    if not item and not depth:
        return False
    return depth < _MOST_AXES and all(
        isinstance(part, (*SCALARS, np.generic))
        or (type(part) in (list, tuple) and is_example(part, depth + 1))
        for part in item
    )


def is_container(example: Any) -> bool:
    """Return whether an argument of `trace` is a container of examples, not an example array."""
    return not is_example(example, depth=1) and open_container(example) is not None


def example_type(example: Any) -> TensorType:
    """Return the type that an argument of `trace` describes, which is one array."""
    if isinstance(example, tuple) and all(is_extent(n) for n in example):
        return spec(example)
    if isinstance(example, TensorType):
        return spec(example.shape, example.dtype)
    array = array_of(example)
    return TensorType(array.shape, array.dtype)


def results_of(name: str, result: Any) -> tuple[Tree, list[Variable]]:
    """Flatten the result of a function into its containers and variables."""
    tree, leaves = flatten_value(result, lambda item: isinstance(item, Variable))
    for leaf in leaves:
        if not (isinstance(leaf, (Variable, *SCALARS)) or hasattr(leaf, "__array__")):
            raise ArgumentError(
                f"{name} returned {result!r:.80}, not a variable or a tuple of variables",
                hint=f"{type(leaf).__name__} {leaf!r:.60} is not an array",
            )
    if not leaves:
        raise ArgumentError(
            f"{name} returned {result!r:.80}, not a variable or a tuple of variables"
        )
    return tree, [lift(leaf) for leaf in leaves]


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return names for `count` arguments: those of the parameters, numbered ones beyond."""
    found: list[str] = []
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found.append(parameter.name)
    found = found[:count]
    return [*found, *(f"x{i}" for i in range(len(found), count))]
