"""Computation of the nodes of an exported graph, one after the other, on variables."""

from __future__ import annotations

import linecache
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.base.providers import late
from primgraph.base.user_lines import Source
from primgraph.control.bodies import active_builder
from primgraph.errors import InternalError, PrimgraphError, UnsupportedError
from primgraph.interop.lacking import Lacking
from primgraph.interop.torch.operators import (  # noqa: F401
    control,
    creation,
    elementwise,
    indexing,
    layers,
    linear_algebra,
    reductions,
    shapes,
)
from primgraph.interop.torch.table import Site, find_meaning, numpy_dtype
from primgraph.ir.types import NAME_OF_DTYPE
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    import torch
else:
    torch = late("torch")

# Functions of sizes, which are integers or symbolic sizes here.
_OF_SIZES = ("_operator", "math", "torch")
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in')


def needed_nodes(graph: Any) -> list[Any]:
    """Return the nodes that results depend on, in order: without checks of sizes."""
    needed = set()
    waiting = [*graph.find_nodes(op="output")]
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    return [node for node in graph.nodes if node in needed]


def run_graph(module: Any, given: Sequence[Any]) -> Any:
    """Record the graph of a module on values of its inputs; return its results."""
    values = dict(zip(module.graph.find_nodes(op="placeholder"), given, strict=True))
    builder = active_builder()
    before = builder.source
    try:
        for node in needed_nodes(module.graph):
            builder.source = source_of(node) or before
            match node.op:
                case "output":
                    return _converted(node.args[0], values)
                case "get_attr":
                    values[node] = _attribute(module, node)
                case "call_function":
                    values[node] = _value(node, values)
    finally:
        builder.source = before
    raise InternalError("a graph of torch has no output")


def as_constant(array: Any) -> Any:
    """Return an array as a variable; None stays None."""
    return None if array is None else lift(array)


def _attribute(module: Any, node: Any) -> Any:
    found = operator.attrgetter(node.target)(module)
    return lift(found.detach().cpu().numpy()) if isinstance(found, torch.Tensor) else found


def _value(node: Any, values: Mapping[Any, Any]) -> Any:
    args = [_converted(x, values) for x in node.args]
    kwargs = {k: _converted(x, values) for k, x in node.kwargs.items()}
    if _is_of_sizes(node):
        return node.target(*args, **kwargs)
    return _call(node, args, kwargs)


def _is_of_sizes(node: Any) -> bool:
    """Return whether a node takes results apart, or computes with sizes."""
    return getattr(node.target, "__module__", "") in _OF_SIZES and not _is_operator(node)


def _is_operator(node: Any) -> bool:
    return isinstance(node.target, torch._ops.OpOverload | torch._ops.HigherOrderOperator)


def _call(node: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call the function of an operator; check types of results, and name the node in errors."""
    name = _name_of(node)
    meaning = find_meaning(name)
    if meaning is None:
        lacking = Lacking("from_torch", "torch")
        lacking.add(name, place_of(node))
        lacking.require_none()
    assert meaning is not None
    metas = _results(node)
    site = Site(
        name,
        tuple([numpy_dtype(m.dtype) if isinstance(m, torch.Tensor) else None for m in metas]),
        tuple([_known_shape(m) for m in metas]),
        run_graph,
    )
    try:
        found = _called(meaning, site, args, _without_places(kwargs))
        several = isinstance(found, tuple | list)
        results = [_typed(x, site, k) for k, x in enumerate(found if several else [found])]
    except PrimgraphError as error:
        raise error.located([f"computed by {name}, {place_of(node)}"]) from None
    return tuple(results) if several else results[0]


def _called(
    meaning: Callable[..., Any], site: Site, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    try:
        return meaning(site, *args, **kwargs)
    except PrimgraphError:
        raise
    except TypeError as error:
        # Options of newer versions, and overloads of other arguments.
        raise UnsupportedError(f"from_torch: {site.name} with its arguments: {error}") from error


def _typed(found: Any, site: Site, k: int) -> Any:
    """Return a result in the dtype that torch gives it. Raises `UnsupportedError` for its shape."""
    dtype = site.dtypes[k] if k < len(site.dtypes) else None
    if found is None or dtype is None:
        return found
    value = found if isinstance(found, Variable) else lift(np.asarray(found, dtype))
    shape = site.shapes[k]
    if shape is not None and value.shape != shape:
        raise UnsupportedError(
            f"from_torch: {site.name} has shape {shape} in torch, and {value.shape} here"
        )
    return value if value.dtype == dtype else value.astype(dtype)


def _results(node: Any) -> Sequence[Any]:
    found = node.meta.get("val")
    return found if isinstance(found, tuple | list) else [found]


def _known_shape(meta: Any) -> tuple[int, ...] | None:
    if not isinstance(meta, torch.Tensor) or any(type(n) is not int for n in meta.shape):
        return None
    return tuple(meta.shape)


def _without_places(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without those of devices and of the order of elements in memory."""
    ignored = ("device", "layout", "pin_memory", "memory_format", "non_blocking")
    return {k: x for k, x in kwargs.items() if k not in ignored}


def _converted(value: Any, values: Mapping[Any, Any]) -> Any:
    """Return an argument with values of nodes, and dtypes of NumPy."""
    if isinstance(value, torch.fx.Node):
        return values[value]
    if isinstance(value, torch.dtype):
        return numpy_dtype(value)
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    if isinstance(value, tuple | list):
        return [_converted(x, values) for x in value]
    return value


# Lines, and operators that are lacking.


def source_of(node: Any) -> Source | None:
    """Return the user's line of a node: the innermost one outside torch."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [f for f in frames if not f[0].startswith(os.path.dirname(torch.__file__))]
    if not own:
        return None
    file, line = own[-1][0], int(own[-1][1])
    return Source(file, line, text=linecache.getline(file, line).strip())


def place_of(node: Any) -> str:
    """Return where a node comes from: a line, or the name of the node."""
    source = source_of(node)
    return f"node {node.name}" if source is None else str(source)


def require_supported(module: Any) -> None:
    """Raise `UnsupportedError` that lists all operators and dtypes that are lacking."""
    lacking = Lacking("from_torch", "torch")
    for node in _all_nodes(module):
        if _is_operator(node) and find_meaning(_name_of(node)) is None:
            lacking.add(_name_of(node), place_of(node))
        for meta in _results(node):
            if isinstance(meta, torch.Tensor) and numpy_dtype(meta.dtype) not in NAME_OF_DTYPE:
                lacking.add(f"dtype {str(meta.dtype).removeprefix('torch.')}", place_of(node))
    lacking.require_none()


def _all_nodes(module: Any) -> Iterator[Any]:
    """Yield the nodes that results depend on, and those of graphs in them."""
    attributes = set(module.graph.find_nodes(op="get_attr"))
    for node in needed_nodes(module.graph):
        yield node
        if node in attributes:
            inner = operator.attrgetter(node.target)(module)
            if isinstance(inner, torch.fx.GraphModule):
                yield from _all_nodes(inner)


def _name_of(node: Any) -> str:
    is_plain = isinstance(node.target, torch._ops.OpOverload)
    return f"{'' if is_plain else 'higher_order.'}{node.target}"
