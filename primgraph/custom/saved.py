"""Calls of custom functions whose rules are kept as graphs, for other processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, final

from primgraph.custom.primitives import Slope, Static
from primgraph.custom.slopes import CallRules, select_cotangents
from primgraph.errors import MissingRuleError, PrimgraphError
from primgraph.ir.graph import Graph
from primgraph.ir.params import bits
from primgraph.ir.primitive import Types
from primgraph.transforms.optimize.edits import bind

# Rules use custom functions with rules of their own, which are saved up to this depth.
_DEEPEST = 8

# The calls of one function that are saved, by static arguments and types of operands; None for
# those too deep.
Saved: TypeAlias = "dict[Any, SavedCall | None]"


@final
class SavedCall(CallRules):
    """Call of a custom function with graphs of its rules; errors of rules are kept as messages."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.types: Types = ()
        # Places of the operands with a derivative.
        self.wrt: tuple[int, ...] = ()
        self.pushes: Graph | str = ""
        self.pulls: Graph | str = ""
        self.defined = False, False

    @property
    def operand_types(self) -> Types:
        return self.types

    def recorded_slope(self) -> Slope:
        return _SavedSlope(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # The state comes after the object, which the graphs of its rules may hold.
        state = {name: value for name, value in vars(self).items() if name != "_slopes"}
        return SavedCall, (self.name.partition("#")[0],), state


@final
class _SavedSlope(Slope):
    """Derivative by saved graphs."""

    __slots__ = ("_call",)

    def __init__(self, call: SavedCall) -> None:
        self._call = call

    @property
    def floats(self) -> tuple[int, ...]:
        return self._call.wrt

    @property
    def defined_rules(self) -> tuple[bool, bool]:
        return self._call.defined

    def push(self, present: tuple[int, ...]) -> Graph:
        graph = self._given(self._call.pushes)
        first = len(graph.inputs) - len(self.floats)
        zeros = [first + k for k, i in enumerate(self.floats) if i not in present]
        return bind(graph, dict.fromkeys(zeros, 0.0))

    def pull(self, present: tuple[int, ...]) -> Graph:
        return select_cotangents(self._given(self._call.pulls), self.floats, present)

    def _given(self, rule: Graph | str) -> Graph:
        if isinstance(rule, str):
            raise MissingRuleError(rule)
        return rule


def same_call(call: SavedCall) -> SavedCall:
    """Return the call: a traced one is pickled as this call of its saved one."""
    return call


def save_call(call: CallRules, known: Saved | None, depth: int = 0) -> SavedCall | None:
    """Return a call with graphs for its rules.

    `known` are the saved calls of its function; without it, the function is found by its name, and
    None is returned. So it is where rules within rules are too deep.
    """
    if known is None:
        return None
    key = _key(call)
    if key not in known:
        known[key] = SavedCall(call.name) if depth < _DEEPEST else None
        found = known[key]
        if found is not None:
            _save_rules(call, found, depth)
    return known[key]


def _key(call: CallRules) -> Any:
    static: Static = call.static
    return bits(static), call.operand_types


def _save_rules(call: CallRules, saved: SavedCall, depth: int) -> None:
    slope = call.recorded_slope()
    saved.static, saved.floats, saved.types = call.static, tuple(call.floats), call.operand_types
    saved.wrt, saved.defined = slope.floats, slope.defined_rules
    saved.pushes, saved.pulls = _rule(slope.push, slope), _rule(slope.pull, slope)
    for graph in (saved.pushes, saved.pulls):
        for inner in _calls_in(graph) if isinstance(graph, Graph) else ():
            save_call(inner, inner.definition.saved, depth + 1)


def _rule(rule: Any, slope: Slope) -> Graph | str:
    """Return the graph of a rule for all floats, or the message of its error."""
    try:
        found: Graph = rule(slope.floats)
    except PrimgraphError as error:
        return error.message
    return found


def _calls_in(graph: Graph) -> Iterator[Any]:
    """Yield the traced calls whose rules a graph needs."""
    for eqn in graph.body:
        call = eqn.kwargs.get("call")
        if isinstance(call, CallRules) and not isinstance(call, SavedCall):
            yield call
        for body in eqn.bodies:
            yield from _calls_in(body)
