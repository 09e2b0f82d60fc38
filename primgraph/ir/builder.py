"""The builder: records equations, and never the same one twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

from primgraph.errors import BuildError, PrimgraphError
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Params, bits, freeze_all
from primgraph.ir.primitive import Op, lookup, recording
from primgraph.ir.source import Source, caller
from primgraph.ir.types import TensorType


@final
class Builder:
    """Records equations in order, and interns them.

    The same op on the same inputs with the same parameters is one equation, so that common
    subexpressions never exist. Entered as a context, it takes what primitives record.

    With `source` set, new equations carry that line; with `source` None, the line of the caller
    outside primgraph. `expands` tells which user-level operators are recorded as what they
    decompose into rather than as themselves. `stopped` holds the values that derivatives treat as
    constants.
    """

    def __init__(
        self,
        name: str = "f",
        source: Source | None = None,
        expands: Callable[[Op], bool] = lambda op: False,
    ) -> None:
        self.name = name
        self.source = source
        self.expands = expands
        self.inputs: list[Value] = []
        self.body: list[Equation] = []
        self.names: dict[str, Value] = {}
        self.declared_at: dict[Value, Source] = {}
        self.stopped: set[Value] = set()
        self._order: dict[Value, int] = {}
        self._known: dict[Hashable, tuple[Value, ...]] = {}
        self._params: dict[Hashable, Params] = {}
        self._defined_by: dict[Value, Equation] = {}
        self._entered: list[recording] = []

    def __enter__(self) -> Builder:
        scope = recording(self)
        scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._entered:
            raise BuildError(f"{self.name} is left, but was not entered", hint="use `with`")
        self._entered.pop().__exit__()

    def __contains__(self, value: Value) -> bool:
        return value in self._order

    def __len__(self) -> int:
        """How many equations have been recorded."""
        return len(self.body)

    def input(self, type: TensorType, name: str = "") -> Value:
        """A new input of the graph."""
        value = Value(type)
        self._order[value] = len(self._order)
        self.inputs.append(value)
        self.declared_at[value] = self.source or caller()
        if name:
            self.rename(value, name)
        return value

    def rename(self, value: Value, name: str) -> None:
        """Give `value` a name, which no other value of this builder has."""
        taken = self.names.get(name)
        if taken is not None and taken is not value:
            raise BuildError(f"the name {name!r} is taken by another value")
        if value.hint and self.names.get(value.hint) is value:
            raise BuildError(f"{value.hint!r} cannot be renamed to {name!r}: a value has one name")
        value.hint = name
        self.names[name] = value

    @contextmanager
    def scratch(self) -> Iterator[list[Equation]]:
        """A context whose equations are forgotten when it is left; inputs declared in it stay.

        The list that it gives holds them from then on. Their values can be used no more.
        """
        recorded: list[Equation] = []
        tables: tuple[dict[Any, Any], ...] = (self._order, self._known, self._defined_by)
        lengths = [len(t) for t in tables]
        count, declared, named = len(self.body), len(self.inputs), len(self.names)
        try:
            yield recorded
        finally:
            recorded += self.body[count:]
            del self.body[count:]
            for table, length in zip(tables, lengths, strict=True):
                _shorten(table, length)
            for value in self.inputs[declared:]:
                self._order[value] = len(self._order)
            removed = _shorten(self.names, named)
            self.names.update((n, v) for n, v in reversed(removed) if v in self._order)

    def argument(self, like: Value) -> Value:
        """A value of the type of `like` that is nothing but itself, for use in a scratch."""
        value = Value(like.type)
        self._order[value] = len(self._order)
        return value

    def hold(self, value: Value, stop: bool) -> Value:
        """`value` as derivatives are to see it from now on: as a constant, or not any more.

        Inputs are flagged themselves. For a computed value it is another one, behind
        `stop_gradient`, that has its name from then on: equal expressions are one value, and
        those of them that nobody holds constant must not be.
        """
        if (value in self.stopped) is stop:
            return value
        eqn = self._defined_by.get(value)
        if eqn is None:
            (self.stopped.add if stop else self.stopped.discard)(value)
            return value
        if stop:
            (other,) = self.emit(lookup("stop_gradient"), [value], {})
            self.stopped.add(other)
        else:
            (other,) = eqn.inputs
            self.stopped.discard(value)
        if value.hint and not other.hint:
            other.hint, value.hint = value.hint, ""
            self.names[other.hint] = other
        return other

    def slice(self, outputs: Sequence[Value], cut: Collection[Value] = ()) -> list[Equation]:
        """The equations that `outputs` depend on other than through values in `cut`, in order."""
        found: dict[Equation, int] = {}
        waiting = list(outputs)
        while waiting:
            value = waiting.pop()
            eqn = None if value in cut else self._defined_by.get(value)
            if eqn is not None and eqn not in found:
                found[eqn] = self._order[eqn.outputs[0]]
                waiting.extend(eqn.inputs)
        return sorted(found, key=found.__getitem__)

    @uncollected
    def inline(self, graph: Graph, inputs: Sequence[Value]) -> list[Value]:
        """Record the body of `graph` on `inputs`; what is there already is not recorded again."""
        moved = dict(zip(graph.inputs, inputs, strict=True))
        for eqn in graph.body:
            results = self.copy(eqn, tuple([moved[v] for v in eqn.inputs]))
            moved.update(zip(eqn.outputs, results, strict=True))
        return [moved[v] for v in graph.outputs]

    def emit(self, op: Op, inputs: Sequence[Value], params: dict[str, Any]) -> tuple[Value, ...]:
        """The outputs of `op` on `inputs`, recorded unless that equation exists already.

        Raises the type rule's `ShapeError` or `DTypeError`, and `BuildError` for a value of
        another builder.
        """
        operands = tuple(inputs)
        key, frozen = self._key(op, operands, params)
        found = self._known.get(key)
        if found is not None:
            return found
        source = self.source or caller()
        try:
            types = op.infer(tuple([v.type for v in operands]), dict(frozen))
        except PrimgraphError as error:
            raise error.located(self.origin(source, operands)) from None
        outputs = tuple([Value(t) for t in types])
        self._append(Equation(op, operands, frozen, outputs, source))
        self._known[key] = outputs
        return outputs

    def find(
        self, op: Op, inputs: Sequence[Value], params: dict[str, Any]
    ) -> tuple[Value, ...] | None:
        """The outputs of that equation if it has been recorded."""
        return self._known.get(self._key(op, tuple(inputs), params)[0])

    def copy(self, eqn: Equation, inputs: tuple[Value, ...]) -> tuple[Value, ...]:
        """Record an equation of another graph on `inputs`; its types are taken as checked."""
        key = self._interning_key(eqn.op, inputs, bits(eqn.params) if eqn.params else ())
        found = self._known.get(key)
        if found is not None:
            return found
        outputs = tuple([Value(v.type) for v in eqn.outputs])
        self._append(Equation(eqn.op, inputs, eqn.params, outputs, eqn.source))
        self._known[key] = outputs
        return outputs

    def definition(self, value: Value) -> Equation | None:
        """The equation that computes `value`; None for an input."""
        return self._defined_by.get(value)

    def position(self, value: Value) -> int:
        """When `value` was defined, counted over all values."""
        return self._order[value]

    def graph(self, outputs: Sequence[Value], name: str | None = None) -> Graph:
        """All that was recorded, as a graph with these outputs."""
        for value in outputs:
            if value not in self._order:
                raise BuildError(f"output {value!r} belongs to another builder")
        return Graph(self.inputs, self.body, outputs, name or self.name)

    def origin(self, source: Source | None, operands: Sequence[Value]) -> list[str]:
        """Lines for an error message: where it was written, where the operands come from."""
        lines = []
        if source is not None:
            lines.append(f"written here:  {source}   {source.text}")
        for value in dict.fromkeys(operands):
            eqn = self._defined_by.get(value)
            if eqn is not None and eqn.source is not None:
                made = f"{eqn.op.name} at {eqn.source}   {eqn.source.text}"
                lines.append(f"{value.type} comes from {made}")
            elif value in self.declared_at:
                place = self.declared_at[value]
                lines.append(f"{value.type} is input {value.hint!r} of {place}   {place.text}")
        return lines

    def _append(self, eqn: Equation) -> None:
        self.body.append(eqn)
        for value in eqn.outputs:
            self._order[value] = len(self._order)
            self._defined_by[value] = eqn

    def _key(
        self, op: Op, inputs: tuple[Value, ...], params: dict[str, Any]
    ) -> tuple[Hashable, Params]:
        if not params:
            return self._interning_key(op, inputs, ()), ()
        frozen = freeze_all(params.items())
        exact = bits(frozen)
        # One tuple serves all equations with equal parameters, which keeps equations small.
        frozen = self._params.setdefault(exact, frozen)
        return self._interning_key(op, inputs, exact), frozen

    def _interning_key(self, op: Op, inputs: tuple[Value, ...], exact: Hashable) -> Hashable:
        order = self._order
        try:
            # By name: a tuple of plain data is one object less for the garbage collector.
            if len(inputs) != 2:
                return (op.name, *[order[v] for v in inputs], exact)
            first, second = order[inputs[0]], order[inputs[1]]
        except KeyError:
            raise BuildError(
                f"an operand of {op.name} belongs to another program or graph",
                origin=self.origin(self.source or caller(), ()),
                hint="values can be used only in the program in which they were made",
            ) from None
        if op.commutative and second < first:
            first, second = second, first
        return (op.name, first, second, exact)


def _shorten(table: dict[Any, Any], length: int) -> list[tuple[Any, Any]]:
    """Remove the newest entries of `table` until `length` are left; return them."""
    return [table.popitem() for _ in range(len(table) - length)]
