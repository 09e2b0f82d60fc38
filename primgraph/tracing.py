"""From a function written with primgraph's operators to a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.signature import applied, checked
from primgraph.ir.types import TensorType, as_dtype, as_shape
from primgraph.operators.promotion import array_of, lift
from primgraph.operators.variable import Variable


@checked
def spec(shape: Any, dtype: Any = None) -> TensorType:
    """The type of an array: its shape, and its dtype or else the default one.

    Raises `ArgumentError` for what is no shape, `ShapeError` for a negative extent, `DTypeError`
    for an unsupported dtype.
    """
    chosen = get_default_dtype() if dtype is None else as_dtype(dtype)
    return TensorType(as_shape(shape), chosen)


@checked
def trace(function: Callable[..., Any], *specs: Any) -> Graph:
    """The graph of `function`, called once with a variable for each of `specs`.

    Each of `specs` is what `spec` gives, a tuple of integers as the shape of an array of the
    default dtype, or an example array, of which only shape and dtype count. The function returns
    a variable, or a tuple or list of them. Inputs have the names of the function's parameters.

    Raises `ArgumentError` if the function returns anything else.
    """
    name = getattr(function, "__name__", "")
    builder = Builder(name if name.isidentifier() else "f")
    types = [spec(s.shape, s.dtype) if isinstance(s, TensorType) else _type_of(s) for s in specs]
    names = _parameter_names(function, len(types))
    variables = [Variable(builder, builder.input(t, n)) for t, n in zip(types, names, strict=True)]
    with builder:
        result = applied(function, *variables)
        outputs = result if isinstance(result, list | tuple) else (result,)
        if not outputs or any(v is None or isinstance(v, Mapping | set | str) for v in outputs):
            raise ArgumentError(
                f"{builder.name} returned {result!r:.80}, not a variable or a tuple of variables"
            )
        values = [lift(v).value for v in outputs]
    return Graph(builder.inputs, builder.slice(values), values, builder.name)


def _type_of(example: Any) -> TensorType:
    if isinstance(example, tuple) and all(type(n) is int for n in example):
        return spec(example)
    array = array_of(example)
    return TensorType(array.shape, array.dtype)


def _parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for `count` arguments: those of the parameters, numbered ones beyond."""
    names: list[str] = []
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    names = names[:count]
    return [*names, *(f"x{i}" for i in range(len(names), count))]
