"""Distinguish traced arrays from NumPy's, and functions with rules from others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Self

from numpy import asarray

from primgraph import tree
from primgraph.compat.autograd.boxes import Box
from primgraph.compat.autograd.core import primitive
from primgraph.eager.tensor import Tensor
from primgraph.ir.graph import Equation
from primgraph.operators.handle import Handle
from primgraph.program.trace import trace as trace_graph

__all__ = ["Box", "Node", "getval", "isbox", "notrace_primitive", "primitive", "trace"]


class Node:
    """A value in a trace; classes made from it keep what `trace` tells of the functions."""

    def __init__(
        self,
        value: Any,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        parent_argnums: tuple[int, ...],
        parents: tuple[Any, ...],
    ) -> None:
        raise NotImplementedError

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Prepare the node of an argument, which no function computes."""
        raise NotImplementedError

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Self:
        """The node of an argument."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


def trace(start_node: Node, fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """Evaluate `fun(x)`; return its value and its node, which is None if no node leads to it.

    Each function on the way from `x`, whose node is `start_node`, gives a node of that class:
    `Node(value, fun, args, kwargs, parent_argnums, parents)`. The functions are primgraph's
    primitives.
    """
    graph = trace_graph(fun, x)
    (start,), (end,) = graph.inputs, graph.outputs
    values, nodes = {start: asarray(x)}, {start: start_node}
    for eqn in graph.body:
        args = tuple(values[v] for v in eqn.inputs)
        function, kwargs = _function_of(eqn), dict(eqn.params)
        found = eqn.op.evaluate(args, kwargs)
        parents = {i: nodes[v] for i, v in enumerate(eqn.inputs) if v in nodes}
        for value, result in zip(eqn.outputs, found, strict=True):
            values[value] = asarray(result)
            if parents:
                nodes[value] = type(start_node)(
                    values[value], function, args, kwargs, (*parents,), (*parents.values(),)
                )
    return values[end], nodes.get(end)


def _function_of(eqn: Equation) -> Callable[..., Any]:
    """The function of arrays that an equation applies, with its name."""

    def function(*args: Any, **kwargs: Any) -> Any:
        return eqn.op.evaluate(args, kwargs)

    function.__name__ = eqn.op.name
    return function


def isbox(value: Any) -> bool:
    """Whether this stands for a value in a function that derivatives are taken of."""
    return isinstance(value, Handle | Box)


def getval(value: Any) -> Any:
    """The elements of a tensor or the object of a box, without derivative; all else as it is."""
    if isinstance(value, Box):
        return value._value
    return value.numpy()[()] if isinstance(value, Tensor) else value


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of the elements alone: no derivative goes through it."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*[tree.map(getval, a) for a in args], **kwargs)

    return call
