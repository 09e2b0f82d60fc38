"""Graph builder: records equations; users get values of their own, passes share equal ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, final

from primgraph.base.atomic import Exit
from primgraph.base.interpreter_limits import uncollected
from primgraph.base.providers import provider
from primgraph.base.user_lines import Source, caller, user_frame
from primgraph.errors import BuildError, PrimgraphError
from primgraph.ir.facts.ops import Entered
from primgraph.ir.frontend.containers import Form
from primgraph.ir.frontend.gradient_names import Joint, Line, note_equal, titles_of
from primgraph.ir.frontend.result_names import automatic_name, read_automatic_name
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import InternedParams, Params
from primgraph.ir.primitive import Op, Types, lookup
from primgraph.ir.slices import Slices
from primgraph.ir.types import DType, TensorType


@final
class Builder:
    """Recorder of equations in order, which interns those that no handle refers to.

    Equal ops on equal inputs with equal parameters are one equation, unless a user holds the
    result: `hand_out` makes it a distinct value, with which no other equation is merged. As a
    context manager, it receives what primitives record.

    With `source` set, new equations carry that line; with `source` None, the line of the caller
    outside primgraph. `expands` tells which user-level operators are recorded as what they
    decompose into rather than as themselves. `stopped` holds the values that derivatives treat as
    constants, `weak` those that are promoted like Python numbers, `kept` the inputs for something
    that runs change. `in_call` tells that an operator is at work, whose intermediate values no user
    sees. For notes about derivatives see `Gradients`. Equal parameters are one tuple in `params`.

    A `closed` one takes no parameters from outside as constants, as derivatives would not see them.
    A `written` one takes what users write: in `pg.no_grad()` that is constant to derivatives.
    What is recorded in one with an `outer` one may use the values of that: an input stands for each
    that is `captured`. One that has `ended` was traced, and takes nothing more. `owner` is
    "program", "function" or "body" if a program, a traced function or the body of a loop or branch
    is recorded.

    >>> from primgraph.extend import Builder, TensorType, lookup
    >>> builder = Builder("double")
    >>> x = builder.input(TensorType((3,), np.dtype("float64")), "x")
    >>> print(builder.graph(builder.emit(lookup("add"), (x, x), {})))
    graph double(%x: f64[3]) {
      %0: f64[3] = add(%x, %x)
      return %0
    }
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
        self.stopped, self.weak = set[Value](), set[Value]()
        # Dtypes of arrays that were recorded as constants of other dtypes.
        self.given: set[DType] = set()
        self.gradients: dict[Value, Value] = {}
        self.targets: dict[Value, Value] = {}
        self.joints: dict[Value, Joint] = {}
        self.lines: dict[Value, Line] = {}
        self.kept: Container[Value] = ()
        self.closed = False
        self.written = False
        self.owner = ""
        self.ended = False
        self.outer: Builder | None = None
        self.captured: dict[Value, Value] = {}
        # All values, with their defining equations.
        self._defined_by: dict[Value, Equation | None] = {}
        self._slices = Slices(self.body, self._defined_by)
        self._known: dict[Hashable, tuple[Value, ...]] = {}
        self.params = InternedParams()
        self._own, self._frozen = self.params.own, self.params.frozen
        self._inferred: dict[Hashable, Types] = {}
        self._entered = Entered()
        self.in_call = False
        # Equations of calls, with the places of their inputs.
        self.calls: dict[Hashable, tuple[tuple[Equation, tuple[int, ...]], ...]] = {}
        # Values that users hold, and the number of equations before the last call.
        self._held: set[Value] = set()
        self._seen = 0
        # Maps a value to its defining equation; None for an input.
        self.definition: Callable[[Value], Equation | None] = self._defined_by.get

    def __enter__(self) -> Builder:
        self._entered.enter(self, user_frame())
        return self

    def _leave(self) -> None:
        if not self._entered:
            raise BuildError(f"{self.name} is left, but was not entered", hint="use `with`")
        self._entered.leave_to(len(self._entered) - 1)

    def undoing(self) -> Callable[[], None]:
        """Return a function that leaves all contexts of this builder entered from now on."""
        return partial(self._entered.leave_to, len(self._entered))

    __exit__ = Exit(_leave, undoing)

    def __contains__(self, value: Value) -> bool:
        return value in self._defined_by

    @property
    def is_entered(self) -> bool:
        """Return whether this builder is entered as a context."""
        return bool(self._entered)

    @property
    def title(self) -> str:
        """Name for messages: "program 'main'", "the function f"."""
        titles = {"program": f"program {self.name!r}", "body": f"the loop or branch {self.name!r}"}
        return titles.get(self.owner, f"the function {self.name}")

    def __len__(self) -> int:
        """Number of recorded equations."""
        return len(self.body)

    def input(self, type: TensorType, name: str = "") -> Value:
        """Add an input to the graph."""
        value = Value(type)
        self.share_input(value)
        self.declared_at[value] = self.source or caller()
        if name:
            self.rename(value, name)
        return value

    def share_input(self, value: Value) -> None:
        """Add an input of another graph to this one."""
        self._defined_by[value] = None
        self.inputs.append(value)

    def own(self, value: Value) -> Value:
        """Return `value`, or the input that stands for it if it belongs to an enclosing builder.

        Raises `BuildError` for a value of neither.
        """
        if value in self._defined_by:
            return value
        if self.outer is None:
            uses = f"{self.name} uses {value.hint or 'a value'} {value.type}, which"
            raise provider("origins").unowned(self, uses)
        if value not in self.captured:
            around = self.outer.own(value)
            inner = self.captured[value] = Value(value.type)
            self._defined_by[inner] = None
            self.inputs.append(inner)
            self.stopped.update([inner] if around in self.outer.stopped else ())
            self.weak.update([inner] if around in self.outer.weak else ())
            if value.hint and value.hint not in self.names:
                self.rename(inner, value.hint)
        return self.captured[value]

    def rename(self, value: Value, name: str) -> None:
        """Name `value`; the name must be unused in this builder."""
        taken = self.named(name)
        if taken is not None and taken is not value:
            raise BuildError(f"the name {name!r} is taken by another value")
        if value.hint and self.names.get(value.hint) is value:
            raise BuildError(f"{value.hint!r} cannot be renamed to {name!r}: a value has one name")
        value.hint = name
        self.names[name] = value

    def name_of(self, value: Value) -> str:
        """Return the name of `value`: the given one, or the automatic one."""
        eqn = self._defined_by.get(value)
        if value.hint or eqn is None:
            return value.hint
        return automatic_name(eqn.op.name, self._slices.place(eqn), eqn.outputs.index(value))

    def named(self, name: str) -> Value | None:
        """Return the value with a given or automatic name, or None."""
        found = self.names.get(name)
        op, place, output = ("", -1, 0) if found is not None else read_automatic_name(name)
        if not 0 <= place < len(self.body):
            return found
        eqn = self.body[place]
        return eqn.outputs[output] if eqn.op.name == op and output < len(eqn.outputs) else None

    @contextmanager
    def scratch(self) -> Iterator[list[Equation]]:
        """Context manager whose equations are removed at the end; inputs declared in it stay.

        Yield the list that receives them then. Their values can no longer be used.
        """
        recorded: list[Equation] = []
        count, declared, named = len(self.body), len(self.inputs), len(self.names)
        defined = len(self._defined_by)
        try:
            yield recorded
        finally:
            recorded += self.body[count:]
            del self.body[count:]
            for eqn in recorded:
                self._leave_table(eqn)
            _shorten(self._defined_by, defined)
            self._slices.forget(recorded)
            self._held.difference_update([v for e in recorded for v in e.outputs])
            self._seen = min(self._seen, count)
            self._defined_by.update(dict.fromkeys(self.inputs[declared:]))
            removed = _shorten(self.names, named)
            self.names.update((n, v) for n, v in reversed(removed) if v in self._defined_by)

    def argument(self, like: Value) -> Value:
        """Return a new value of the type of `like`, distinct from all others, for a scratch."""
        value = Value(like.type)
        self._defined_by[value] = None
        return value

    def hold(self, value: Value, stop: bool) -> None:
        """Set whether derivatives treat `value` as a constant."""
        self.claim(value)
        (self.stopped.add if stop else self.stopped.discard)(value)

    def begin_call(self) -> None:
        """Mark the start of a call: the next values handed out come from equations after it."""
        self._seen = len(self.body)

    def hand_out(self, values: Sequence[Value]) -> list[Value]:
        """Return `values` as distinct values for the user.

        An equation recorded since `begin_call` becomes the user's: no other equation is merged with
        it. An older one is recorded again. An input, a value handed out before, and one that occurs
        several times in `values` get an identity reshape. Duplicates then do not depend on each
        other.
        """
        again: dict[Equation, tuple[Value, ...]] = {}
        repeated = set() if len(values) == 1 else {v for v, n in Counter(values).items() if n > 1}
        return [self._handed_out(v, again, v in repeated) for v in values]

    def _handed_out(
        self, value: Value, again: dict[Equation, tuple[Value, ...]], repeated: bool
    ) -> Value:
        eqn = self._defined_by[value]
        if eqn is None or repeated or value in self._held:
            shape = {"shape": value.type.shape}
            other = self.emit(lookup("reshape"), [value], shape, distinct=True)[0]
        elif self._is_new(eqn):
            other = value
        else:
            if eqn not in again:
                again[eqn] = self.copy_distinct(eqn, eqn.inputs)
            other = again[eqn][eqn.outputs.index(value)]
        self.claim(other)
        if other is not value:
            note_equal(self, value, other)
        return other

    def _is_new(self, eqn: Equation) -> bool:
        """Return whether `eqn` was recorded since `begin_call`."""
        if len(self.body) == self._seen:
            return False
        return eqn is self.body[-1] or self._slices.place(eqn) >= self._seen

    def claim(self, value: Value) -> None:
        """Mark `value` as held by a user: later equations are not merged with its own."""
        eqn = self._defined_by[value]
        self._held.add(value)
        if eqn is not None:
            self._leave_table(eqn)

    def _leave_table(self, eqn: Equation) -> None:
        """Exclude `eqn` from merging with later equations."""
        key = _interning_key(eqn.op, eqn.inputs, self._own(eqn.params) if eqn.params else ())
        if self._known.get(key) is eqn.outputs:
            del self._known[key]

    def is_held(self, value: Value) -> bool:
        """Return whether a user holds `value`."""
        return value in self._held

    def slice(self, outputs: Sequence[Value], cut: Collection[Value] = ()) -> list[Equation]:
        """Return the equations that `outputs` depend on, in order, stopping at values in `cut`."""
        return self._slices.equations_before(outputs, cut)

    def computing(self, outputs: Sequence[Value]) -> tuple[list[Equation], list[Value]]:
        """Return the equations that compute `outputs`, in order and without formal ones, and the
        values of `outputs` there."""
        return self._slices.computing_equations(outputs)

    def part(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        name: str | None = None,
        form: Form | None = None,
    ) -> Graph:
        """Return the graph that computes `outputs` from `inputs`."""
        body, ends = self.computing(outputs)
        return Graph(inputs, body, ends, name or self.name, form, titles_of(self, outputs))

    def between(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        cut: Collection[Value] = (),
        *,
        apart: bool = False,
    ) -> list[Equation]:
        """Return the equations on paths from `inputs` to `outputs` that avoid `cut`, in order.

        They include the constants, conditions and indices that these use. See
        `Slices.equations_between`.
        """
        return self._slices.equations_between(inputs, outputs, cut, apart=apart)

    @uncollected
    def inline(self, graph: Graph, inputs: Sequence[Value], *, shared: bool = False) -> list[Value]:
        """Record the body of `graph` on `inputs`, reusing equal equations.

        With `shared`, equations are used as they are where possible.
        """
        for value in inputs:
            if value not in self._defined_by:
                raise provider("origins").unowned(self, f"an operand of {graph.name}")
        moved = {v: w for v, w in zip(graph.inputs, inputs, strict=True) if v is not w}
        self.add_all(graph.body, moved, shared=shared)
        return [moved.get(v, v) for v in graph.outputs]

    def emit(
        self, op: Op, inputs: Sequence[Value], params: dict[str, Any], *, distinct: bool = False
    ) -> tuple[Value, ...]:
        """Record `op` on `inputs`, unless an equal equation exists, and return its outputs.

        With `distinct`, it is always recorded and never merged. Raises the type rule's `ShapeError`
        or `DTypeError`, and `BuildError` for a value of another builder.
        """
        if self.ended:
            raise provider("origins").leaked_error(self, inputs[0] if inputs else None)
        operands = tuple(inputs) if self.outer is None else tuple(map(self.own, inputs))
        return self.record(op, operands, self._frozen(params) if params else (), distinct=distinct)

    def record(
        self, op: Op, operands: tuple[Value, ...], params: Params, *, distinct: bool = False
    ) -> tuple[Value, ...]:
        """Like `emit`, for values and interned parameters of this builder."""
        for value in operands:
            if value not in self._defined_by:
                raise provider("origins").unowned(self, f"an operand of {op.name}")
        key = None if distinct else _interning_key(op, operands, params)
        found = None if key is None else self._known.get(key)
        if found is not None:
            return found
        source = self.source or caller()
        try:
            types = self.infer(op, tuple([v.type for v in operands]), params)
        except PrimgraphError as error:
            raise error.located(self.origin(source, operands)) from None
        outputs = tuple([Value(t) for t in types])
        self._append(key, Equation(op, operands, params, outputs, source))
        return outputs

    def copy(
        self,
        eqn: Equation,
        inputs: tuple[Value, ...],
        source: Source | None = None,
        *,
        held: bool = False,
    ) -> tuple[Value, ...]:
        """Record an equation of another graph on `inputs`, without checking its types again.

        It keeps its source line unless `source` is given. With `held`, its results are handed out.
        """
        params = self._own(eqn.params) if eqn.params else ()
        key = _interning_key(eqn.op, inputs, params)
        found = self._known.get(key)
        if found is not None:
            return tuple(self.hand_out(found)) if held else found
        outputs = tuple([Value(v.type) for v in eqn.outputs])
        if held:
            self._held.update(outputs)
        new = Equation(eqn.op, inputs, params, outputs, source or eqn.source)
        self._append(None if held else key, new)
        return outputs

    def copy_distinct(
        self, eqn: Equation, inputs: tuple[Value, ...], source: Source | None = None
    ) -> tuple[Value, ...]:
        """Like `copy`, but always record the equation, and never merge it."""
        params = self._own(eqn.params) if eqn.params else ()
        outputs = tuple([Value(v.type) for v in eqn.outputs])
        self._append(None, Equation(eqn.op, inputs, params, outputs, source or eqn.source))
        return outputs

    def share(
        self, eqn: Equation, inputs: tuple[Value, ...], *, distinct: bool = False
    ) -> tuple[Value, ...]:
        """Like `copy`, but reuse the equation itself if `inputs` are its own.

        For passes, whose result shares most equations with the input graph. Equations with named
        results are copied, as a name belongs to one program. With `distinct`, nothing is merged.
        """
        if not self._may_share(eqn, inputs):
            return self.copy_distinct(eqn, inputs) if distinct else self.copy(eqn, inputs)
        params = self._own(eqn.params) if eqn.params else ()
        key = None if distinct else _interning_key(eqn.op, inputs, params)
        found = None if key is None else self._known.get(key)
        if found is not None:
            return found
        self._append(key, eqn)
        return eqn.outputs

    def _may_share(self, eqn: Equation, inputs: tuple[Value, ...]) -> bool:
        for value in eqn.outputs:
            if value.hint or value in self._defined_by:
                return False
        return inputs is eqn.inputs or inputs == eqn.inputs

    def add_all(
        self,
        equations: Iterable[Equation],
        moved: dict[Value, Value],
        source: Source | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """Record equations like `copy`, or `share` if they may be `shared`.

        `moved` maps their values to those of this builder; other values stay the same.
        """
        gone, known, own = moved.keys(), self._known, self._own
        for eqn in equations:
            op, inputs, outputs = eqn.op, eqn.inputs, eqn.outputs
            if not gone.isdisjoint(inputs):
                inputs = tuple([moved.get(v, v) for v in inputs])
            params = own(eqn.params) if eqn.params else ()
            key = _interning_key(op, inputs, params)
            results = known.get(key)
            if results is None:
                if not (shared and self._may_share(eqn, inputs)):
                    results = tuple([Value(v.type) for v in outputs])
                    eqn = Equation(op, inputs, params, results, source or eqn.source)
                self._append(key, eqn)
                results = eqn.outputs
            if results is not outputs:
                moved.update(zip(outputs, results, strict=True))

    def infer(self, op: Op, types: Types, params: Params = ()) -> Types:
        """Return the types of the results, cached by arguments.

        `params` are those of an equation of this builder.
        """
        key = (op.name, types, id(params))
        found = self._inferred.get(key)
        if found is None:
            found = self._inferred[key] = op.infer(types, dict(params))
        return found

    def graph(self, outputs: Sequence[Value], name: str | None = None) -> Graph:
        """Return all recorded equations as a graph with these outputs."""
        for value in outputs:
            if value not in self._defined_by:
                raise BuildError(f"output {value!r} belongs to another builder")
        return Graph(self.inputs, self.body, outputs, name or self.name)

    def origin(self, source: Source | None, operands: Sequence[Value]) -> list[str]:
        """Return the lines for an error: the source, and the lines that computed the operands."""
        return provider("origins").lines_of(self, source, operands)  # type: ignore[no-any-return]

    def described(self, value: Value) -> list[tuple[str, str]]:
        """Return the known properties of `value`, as names and texts, without empty ones."""
        found: list[tuple[str, str]] = provider("origins").described(self, value)
        return found

    def _append(self, key: Hashable | None, eqn: Equation) -> None:
        self.body.append(eqn)
        if key is not None:
            self._known[key] = eqn.outputs
        for value in eqn.outputs:
            self._defined_by[value] = eqn


def _interning_key(op: Op, inputs: tuple[Value, ...], params: Params) -> Hashable:
    """Return the key for common subexpression elimination: equal only for equal computations."""
    if op.commutative and len(inputs) == 2 and id(inputs[1]) < id(inputs[0]):
        inputs = inputs[::-1]
    return (op.name, inputs, id(params))


def _shorten(table: dict[Any, Any], length: int) -> list[tuple[Any, Any]]:
    """Remove and return the newest entries of `table` until `length` are left."""
    return [table.popitem() for _ in range(len(table) - length)]
