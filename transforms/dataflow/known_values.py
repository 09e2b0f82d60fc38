"""Compile-time constants: values that depend on no input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive

Array = np.ndarray[Any, Any]
# Input values with functions that return their arrays, called when needed.
Given = Mapping[Value, Callable[[], "Array | None"]]

# Larger arrays are not computed.
_LARGEST = 2**23


@final
class Known:
    """Lazily evaluated arrays of a graph's constant values.

    `given` has arrays of inputs, where these are known.
    """

    __slots__ = ("_arrays", "_given", "_made")

    def __init__(self, graph: Graph, given: Given | None = None) -> None:
        self._made = {v: e for e in graph.body for v in e.outputs}
        self._given = given or {}
        self._arrays: dict[Value, Array | None] = {}

    def number(self, value: Value) -> Any:
        """Return the number that all elements equal, if a `full` shows it; else None."""
        eqn = self._made.get(value)
        while eqn is not None and isinstance(eqn.op, Primitive) and eqn.op.is_view:
            eqn = self._made.get(eqn.inputs[0])
        return eqn and eqn.number

    def array(self, value: Value) -> Array | None:
        """Return the array of `value`; None if it depends on unknown inputs or is very large."""
        arrays = self._arrays
        waiting = [value]
        while waiting:
            last = waiting[-1]
            if last in arrays:
                waiting.pop()
                continue
            eqn = self._made.get(last)
            if eqn is None:
                given = self._given.get(last)
                arrays[last] = None if given is None else given()
                continue
            if not self._is_wanted(eqn) or any(arrays.get(v, self) is None for v in eqn.inputs):
                arrays.update(dict.fromkeys(eqn.outputs))
                continue
            missing = [v for v in eqn.inputs if v not in arrays]
            if missing:
                waiting.append(missing[0])
                continue
            arrays.update(zip(eqn.outputs, self._evaluate(eqn), strict=True))
        return arrays[value]

    def _is_wanted(self, eqn: Equation) -> bool:
        op = eqn.op
        if not isinstance(op, Primitive) or op.random or op.has_bodies:
            return False
        return all(type(v.type.size) is int and v.type.size <= _LARGEST for v in eqn.outputs)

    def _evaluate(self, eqn: Equation) -> list[Array | None]:
        arrays = [self._arrays[v] for v in eqn.inputs]
        with np.errstate(all="ignore"):
            try:
                return [np.asarray(a) for a in eqn.op.evaluate(arrays, eqn.kwargs)]
            except Exception as error:
                if is_interruption(error):
                    raise
                return [None for _ in eqn.outputs]
