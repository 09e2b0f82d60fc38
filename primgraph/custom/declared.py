"""Custom functions in programs: a computed value with derivative rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from primgraph.custom.definition import Definition
from primgraph.custom.primitives import Batched, Rules, Slope, Static, as_custom
from primgraph.custom.slopes import drop_batch_axes
from primgraph.custom.traced import TracedCall
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.params import bits
from primgraph.ir.primitive import Types, active_recorder
from primgraph.operators.promotion import lift
from primgraph.operators.variable import emit, handle_of
from primgraph.primitives.elementwise import stop_gradient

# Number of cached calls read from text or files.
_MANY = 1024


@final
class Declared(Rules):
    """Function with rules. Each call is traced again, as values that it closes over may change.

    Calls read from text or files, identified by the function's name and static arguments, are
    rebuilt when they are differentiated.
    """

    __slots__ = ("_calls", "definition")

    def __init__(self, name: str, definition: Definition) -> None:
        super().__init__(name)
        self.definition = definition
        self._calls: dict[Any, TracedCall] = {}

    def slope(self, static: Static, types: Types, batched: Batched) -> Slope | None:
        plain = drop_batch_axes(types, batched)
        key = (bits(static), plain)
        if key not in self._calls:
            if len(self._calls) >= _MANY:
                del self._calls[next(iter(self._calls))]
            self._calls[key] = TracedCall(self, self.definition, static, plain)
        return self._calls[key].slope(static, types, batched)

    def record(self, static: Static, given: Sequence[Any]) -> Any:
        """Record the function in the active program, with its custom derivative."""
        operands = [lift(a) for a in given]
        recorder = active_recorder()
        assert isinstance(recorder, Builder)
        types = tuple([v.type for v in operands])
        call = TracedCall(self, self.definition, static, types, recorder)
        inputs = [*(v.value for v in operands), *map(recorder.own, call.captured)]
        values = recorder.inline(call.body(), inputs)
        leaves = [handle_of(recorder, v) for v in values]
        if not any(v.type.is_inexact for v in inputs):
            return call.unflatten_results(leaves)
        values = [v.value for v in leaves]
        found = attach_rule(recorder, call, self, [values[i] for i in call.floats], inputs)
        for i, value in zip(call.floats, found, strict=True):
            leaves[i] = handle_of(recorder, value)
        return call.unflatten_results([
            v if i in call.floats or not v.type.is_inexact else emit(stop_gradient, v)
            for i, v in enumerate(leaves)
        ])  # fmt: skip


def attach_rule(
    builder: Builder,
    call: TracedCall,
    rule: Declared,
    computed: Sequence[Value],
    operands: Sequence[Value],
) -> list[Value]:
    """Attach the custom derivative of `call` to its float results, `computed` from `operands`."""
    held = [builder.emit(stop_gradient, [v], {})[0] for v in computed]
    others = held if len(held) > 1 else []
    params = {"rule": rule, "call": call, "static": call.static, "count": len(operands)}
    return [
        builder.emit(as_custom, [v, *operands, *others], {**params, "result": i, "batched": ()})[0]
        for i, v in enumerate(held)
    ]
