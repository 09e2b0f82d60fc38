"""Pre- and postconditions of transforms, checked in debug mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from primgraph.base.debug_mode import debugging
from primgraph.base.interpreter_limits import uncollected
from primgraph.errors import InternalError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import Primitive
from primgraph.ir.slices import backward_slice
from primgraph.ir.verify import verify_once

P = ParamSpec("P")
R = TypeVar("R", bound="Graph | tuple[Graph, ...]")

Condition: TypeAlias = Callable[[Graph], str]
"""A property of graphs: says what is wrong with one, or nothing."""

# All transforms by module and name, for tests of common properties.
declared: dict[str, Callable[..., Any]] = {}

# Called with every graph that a transform returns in debug mode; tests append to it.
observers: list[Callable[[Graph], None]] = []


def transform(
    *, requires: Sequence[Condition] = (), ensures: Sequence[Condition] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Declare a transform: a function from a graph, its first argument, to one or several graphs.

    In debug mode the conditions `requires` are checked of the argument, and `ensures` of the
    results. A condition takes a graph and returns a fault as text, empty if there is none.

    >>> from primgraph.extend import primitives_only, transform
    >>> @transform(requires=(primitives_only,))
    ... def first_output(graph):
    ...     return graph.with_outputs(graph.outputs[:1])
    >>> graph = pg.trace(lambda x: (pg.sin(x), pg.cos(x)), pg.spec(3))
    >>> len(first_output(graph).outputs)
    1
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        @check_arguments
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if not debugging.get():
                with uncollected:
                    return _drop_form(function(*args, **kwargs))
            before: Any = args[0]
            _check(before, requires, f"the argument of {function.__name__}")
            with uncollected:
                result = _drop_form(function(*args, **kwargs))
            for graph in result if isinstance(result, tuple) else (result,):
                _check(graph, ensures, f"the result of {function.__name__}")
                for observe in observers:
                    observe(graph)
            return result

        declared[f"{function.__module__}.{function.__qualname__}"] = call
        return call

    return declare


def _drop_form(result: R) -> R:
    """Return the result with plain lists of inputs and outputs, even if it is the given graph."""
    if isinstance(result, Graph) and (result.form is not None or result.titles):
        plain: Any = result.in_form(None).titled(())
        found: R = plain
        return found
    return result


def _check(graph: Graph, conditions: Sequence[Condition], what: str) -> None:
    verify_once(graph)
    for condition in conditions:
        fault = condition(graph)
        if fault:
            raise InternalError(f"{what} breaks its contract: {fault}")


def primitives_only(graph: Graph) -> str:
    """Check that every equation applies a primitive, in bodies of loops and branches too.

    Return the fault as text, which is empty if there is none: a condition for `transform`.

    >>> from primgraph.extend import primitives_only
    >>> graph = pg.trace(pg.softmax, pg.spec(3))
    >>> primitives_only(graph)
    'softmax is not a primitive; lower the graph first'
    >>> primitives_only(pg.transforms.lower(graph))
    ''
    """
    for eqn in graph.body:
        if not isinstance(eqn.op, Primitive):
            return f"{eqn.op.name} is not a primitive; lower the graph first"
        for body in eqn.bodies:
            if fault := primitives_only(body):
                return fault
    return ""


def every_equation_is_used(graph: Graph) -> str:
    """Check that every equation helps to compute some output.

    Return the fault as text, which is empty if there is none: a condition for `transform`.

    >>> from primgraph.extend import every_equation_is_used
    >>> graph = pg.trace(lambda x: (pg.sin(x), pg.cos(x)), pg.spec(3))
    >>> every_equation_is_used(graph)
    ''
    >>> every_equation_is_used(graph.with_outputs(graph.outputs[:1]))
    'the result of cos is used nowhere'
    """
    used = {*backward_slice(graph.body, graph.outputs)}
    unused = (eqn for eqn in reversed(graph.body) if eqn not in used)
    return next((f"the result of {eqn.op.name} is used nowhere" for eqn in unused), "")
