"""Traced call of a custom function: graphs of the function and of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias, final

from primgraph.base.grad_mode import enable_tracking
from primgraph.custom.definition import Call, Definition, pull_cotangents, push_tangents, rule_lines
from primgraph.custom.primitives import Slope, Static
from primgraph.custom.saved import same_call, save_call
from primgraph.custom.slopes import CallRules, select_cotangents
from primgraph.custom.static import arrange_arguments
from primgraph.eager.inplace.adoption import Adoption, adopting
from primgraph.eager.mixed import adopt_around
from primgraph.eager.tensor import Tensor
from primgraph.errors import BuildError, MissingRuleError, NotDifferentiable
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Named
from primgraph.ir.primitive import Types
from primgraph.ir.slices import drop_equations, forward_slice
from primgraph.ir.types import TensorType
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable, handle_of
from primgraph.primitives.constants import filled_constant
from primgraph.program.trace import results_of, with_flags
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.edits import bind, dead_code
from primgraph.transforms.pullback import pushforward
from primgraph.transforms.transpose import transpose

# The inputs of a rule, and its results.
_Recorded: TypeAlias = tuple[list[Variable], list[Value]]

# The functions whose rules are being recorded to find captured values.
_finding: ContextVar[tuple[Named, ...]] = ContextVar("primgraph_finding_captured", default=())


@final
class TracedCall(Call, CallRules):
    """Call on operands of given types, traced in a builder of its own.

    `leaves` are the variables in the function's result, and `floats` the indices of those with a
    derivative. Rules see `results` in place of these, which have the derivative of the rules.
    `captured` are values of the enclosing program, `outer`, that the function or its rules use.
    They are further operands, after the arguments, without derivative.
    """

    def __init__(
        self,
        rule: Named,
        definition: Definition,
        static: Static,
        types: Types,
        outer: Builder | None = None,
    ) -> None:
        super().__init__(f"{rule.name}()")
        self.definition = definition
        self.static = static
        self.builder = Builder(definition.name if definition.name.isidentifier() else "custom")
        self.operands = [handle_of(self.builder, self.builder.input(t)) for t in types]
        self._args, self.kwargs = arrange_arguments(static, self.operands)
        self.builder.owner = "function"
        self.builder.closed = self.builder.written = True
        self.captured: tuple[Value, ...] = ()
        # Whether a rule of the function makes this call: recording its rules would not terminate.
        self._is_inner = rule in _finding.get()
        self._rules: dict[tuple[int, ...] | None, _Recorded] = {}
        self._noted: list[tuple[Callable[..., Any], list[Value]]] = []
        with self._enter_builder(outer):
            found, self.state = self._begin_call()
            self.tree, self.leaves = results_of(definition.name, found)
            constants = {v.value for v in definition.constants(self.state)}
            self.types = tuple([v.type for v in self.leaves])
            self.floats = [
                i
                for i, v in enumerate(self.leaves)
                if v.type.is_inexact and v.value not in constants
            ]
            self.results = list(self.leaves)
            for i in self.floats:
                self.results[i] = _input(self.builder, self.types[i])
            if outer is not None and not self._is_inner:
                self._find_captured(rule)

    @contextmanager
    def _enter_builder(self, outer: Builder | None) -> Iterator[None]:
        """Record into the builder of this call, which may capture values of `outer`."""
        around = adopting.get()
        adoption: Adoption[Tensor] = Adoption(self.builder)
        adopts = outer is not None and around is not None and around.builder is outer
        before = adopting.get()
        self.builder.outer = outer
        try:
            adopting.set(adoption if adopts else around)
            with self.builder, enable_tracking():
                yield
        finally:
            adopting.set(before)
        if outer is not None:
            adopt_around(outer, adoption)
            self.captured = tuple(self.builder.captured)
            if not self.captured and not self._is_inner:
                self.builder.outer = None

    def _find_captured(self, rule: Named) -> None:
        """Record the rules to find the values that they capture.

        Errors of a rule are ignored here: the derivative that needs it raises them again.
        """
        before = _finding.get()
        try:
            _finding.set((*_finding.get(), rule))
            for given, record in (
                (self.definition.pushes, self.record_push),
                (self.definition.pulls, self.record_pull),
            ):
                if given is not None:
                    with suppress(Exception):
                        record()
        finally:
            _finding.set(before)

    def record_push(self, present: tuple[int, ...] = ()) -> _Recorded:
        """Record the rule for tangents of the operands at `present`, or of all floats: return these
        tangents, and those of the results."""
        if present not in self._rules:
            with self.builder, enable_tracking():
                tangents = {
                    v.value: _input(self.builder, v.type)
                    for i, v in enumerate(self.operands)
                    if v.type.is_inexact and (not present or i in present)
                }
                found = push_tangents(self, [self._tangent(tangents, a) for a in self.args])
                values = [
                    filled_constant(0, self.types[i]) if found[i] is None else found[i].value
                    for i in self.floats
                ]
            self._rules[present] = list(tangents.values()), values
        return self._rules[present]

    def _tangent(self, tangents: dict[Value, Variable], argument: Any) -> Variable | None:
        """Return the tangent of an argument: zeros, or None, if it has none."""
        found = _find_variable(tangents, argument)
        if found is None and not self.definition.skips_zeros and isinstance(argument, Variable):
            return self.zeros(argument.type) if argument.type.is_inexact else None
        return found

    def record_pull(self) -> _Recorded:
        """Record the rule for cotangents: return its input cotangents, and those of the
        operands."""
        if None not in self._rules:
            with self.builder, enable_tracking():
                cts = {i: _input(self.builder, self.types[i]) for i in self.floats}
                found = pull_cotangents(self, [cts.get(i) for i in range(len(self.types))])
                places = {a.value: i for i, a in enumerate(self.args) if isinstance(a, Variable)}
                values = []
                for operand in self.differentiable_operands():
                    ct = found[places[operand.value]]
                    values.append(filled_constant(0, operand.type) if ct is None else ct.value)
            self._rules[None] = list(cts.values()), values
        return self._rules[None]

    def differentiable_operands(self) -> list[Variable]:
        """Return the operands among the arguments that have a derivative."""
        return [v for v in self.operands if v.type.is_inexact]

    def _begin_call(self) -> tuple[Any, Any]:
        """Run the function: return its results and its state."""
        try:
            return self.definition.begin(self._args, self.kwargs)
        except BuildError as error:
            if type(error) is not BuildError:
                raise
            raise BuildError(
                f"{self.definition.name}: {error.message}",
                origin=error.origin,
                hint="a custom function is traced apart, and takes all that it computes with as "
                "arguments: variables of the program and weights of layers, too",
            ) from None

    @property
    def args(self) -> Sequence[Any]:
        return self._args

    def saved_array(self, kept: Any) -> Any:
        value = kept.value
        if value in {v.value for v in self.operands}:
            return kept
        found = (r for r, v in zip(self.results, self.leaves, strict=True) if v.value is value)
        return next(found, kept)

    def note(self, rule: Callable[..., Any], values: Sequence[Any]) -> None:
        self._noted.append((rule, [v.value for v in values]))

    def returned_graphs(self) -> list[tuple[Callable[..., Any], Graph]]:
        """Return the values that rules returned, as graphs of the operands."""
        return [(rule, self.graph([], values)) for rule, values in self._noted]

    def lift(self, array: Any) -> Any:
        return lift(array)

    def zeros(self, type: TensorType) -> Any:
        return Variable(self.builder, filled_constant(0, type))

    @property
    def operand_types(self) -> Types:
        return (*[v.type for v in self.operands], *[v.type for v in self.captured])

    def recorded_slope(self) -> Slope:
        return TracedSlope(self)

    def __reduce__(self) -> tuple[Any, ...]:
        saved = save_call(self, self.definition.saved)
        return super().__reduce__() if saved is None else (same_call, (saved,))

    def graph(self, others: Sequence[Variable], outputs: Sequence[Value]) -> Graph:
        """Return the graph from the operands and `others` to `outputs`, all of this builder."""
        known = self.builder.captured
        if len(known) > len(self.captured):
            raise BuildError(
                f"a rule of {self.definition.name} uses a value of the program around it that the "
                "function did not use when it was called",
                hint=f"make it an argument of {self.definition.name}",
            )
        operands = [*(v.value for v in self.operands), *(known[v] for v in self.captured)]
        part = self.builder.part([*operands, *(v.value for v in others)], outputs)
        return with_flags(part, self.builder) if self.builder.stopped else part

    def body(self) -> Graph:
        """Return the graph of the results."""
        return self.graph([], [v.value for v in self.leaves])


@final
class TracedSlope(Slope):
    """Derivative of a call by its rules, or by the transpose of the given rule."""

    __slots__ = ("_call", "_floats", "_pulls", "_pushes")

    def __init__(self, call: TracedCall) -> None:
        self._call = call
        self._floats = tuple(i for i, v in enumerate(call.operands) if v.type.is_inexact)
        self._pushes: dict[tuple[int, ...], Graph] = {}
        self._pulls: dict[tuple[int, ...], Graph] = {}

    @property
    def floats(self) -> tuple[int, ...]:
        return self._floats

    def push(self, present: tuple[int, ...]) -> Graph:
        self._refuse_captured(present)
        if present not in self._pushes:
            given = self._call.definition.pushes is not None
            self._pushes[present] = (
                self._push_graph(present) if given else self._turned_pull(present)
            )
        return self._pushes[present]

    def pull(self, present: tuple[int, ...]) -> Graph:
        self._refuse_captured(present)
        if present not in self._pulls:
            if present != self.floats:
                whole = self.pull(self.floats)
                self._pulls[present] = select_cotangents(whole, self.floats, present)
            elif self._call.definition.pulls is not None:
                self._pulls[present] = self._pull_graph()
            else:
                self._pulls[present] = self._turned_push()
        return self._pulls[present]

    def _refuse_captured(self, present: tuple[int, ...]) -> None:
        """Raise for a derivative by a captured value, for which there is no rule."""
        call = self._call
        for i in present:
            if i >= len(call.operands):
                value = call.captured[i - len(call.operands)]
                name = call.definition.name
                raise NotDifferentiable(
                    f"{name} uses {value.hint or 'a value'} {value.type} from around it, by which "
                    "its rules give no derivative",
                    origin=rule_lines(call.definition.pulls or call.definition.pushes),
                    hint=f"make it an argument of {name}; with pg.stop_gradient it is a constant",
                )

    @property
    def _results(self) -> list[Variable]:
        return [self._call.results[i] for i in self._call.floats]

    def rules(self) -> tuple[Graph | None, Graph | None]:
        """Return the graphs of the given rules, for tangents and for cotangents."""
        pushes, pulls = self.defined_rules
        return (
            self.push(self.floats) if pushes else None,
            self.pull(self.floats) if pulls else None,
        )

    @property
    def defined_rules(self) -> tuple[bool, bool]:
        definition = self._call.definition
        return definition.pushes is not None, definition.pulls is not None

    def _turned_pull(self, present: tuple[int, ...]) -> Graph:
        """Return forward mode as the transpose of the cotangent rule."""
        graph = self.pull(present)
        seeds = range(len(graph.inputs) - len(self._results), len(graph.inputs))
        return self._transpose_rule(graph, seeds, ("forward", "cotangents", "tangents"))

    def _turned_push(self) -> Graph:
        """Return reverse mode as the transpose of the tangent rule."""
        graph = self.push(self.floats)
        seeds = range(len(graph.inputs) - len(self.floats), len(graph.inputs))
        return self._transpose_rule(graph, seeds, ("reverse", "tangents", "cotangents"))

    def _transpose_rule(self, graph: Graph, seeds: range, words: tuple[str, str, str]) -> Graph:
        definition = self._call.definition
        mode, given, other = words
        try:
            return dead_code(_transposed(self._without_itself(graph, seeds), seeds))
        except MissingRuleError as error:
            rule = definition.pulls if mode == "forward" else definition.pushes
            raise MissingRuleError(
                f"{mode} mode of {definition.name}: its rule for {given} is not linear in them, so "
                f"that none for {other} follows: {error.message}",
                origin=dict.fromkeys((*rule_lines(rule), *error.origin[:1])),
                hint=f"give a rule for {other} as well, or let {definition.name} be "
                f"differentiated in {'reverse' if mode == 'forward' else 'forward'} mode only",
            ) from None

    def _without_itself(self, graph: Graph, seeds: range) -> Graph:
        """Return the graph of a rule that calls the function on seeds, with its equations instead.

        Its rule would be transposed by itself without end.
        """
        definition = self._call.definition
        linear = forward_slice(graph.body, [graph.inputs[i] for i in seeds])

        def is_itself(eqn: Equation) -> bool:
            if eqn.op.own_slope != "given" or eqn.output not in linear:
                return False
            return getattr(eqn.kwargs["rule"], "definition", None) is definition

        return drop_equations(graph, is_itself)

    def _push_graph(self, present: tuple[int, ...]) -> Graph:
        """Graph of the tangent rule for operands at `present`."""
        tangents, values = self._call.record_push(() if present == self.floats else present)
        return lower(self._call.graph([*self._results, *tangents], values))

    def _pull_graph(self) -> Graph:
        """Graph of the cotangent rule."""
        cts, values = self._call.record_pull()
        return lower(self._call.graph([*self._results, *cts], values))


def _transposed(graph: Graph, seeds: range) -> Graph:
    """Return the transpose of a graph that is linear in the last inputs, `seeds`.

    Functions with rules are not linear as equations are, even if they are linear functions: their
    tangents, at zero, take their place.
    """
    try:
        return transpose(graph, seeds)
    except MissingRuleError:
        if not any(eqn.op.own_slope == "given" for eqn in graph.body):
            raise
    linear = pushforward(graph, [*seeds], "cotangent")
    return transpose(bind(linear, dict.fromkeys(seeds, 0.0)), seeds)


def _input(builder: Builder, type: TensorType) -> Variable:
    return Variable(builder, builder.input(type))


def _find_variable(by_value: dict[Value, Variable], argument: Any) -> Variable | None:
    return by_value.get(argument.value) if isinstance(argument, Variable) else None
