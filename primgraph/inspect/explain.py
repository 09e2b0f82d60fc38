"""Explain a derivative: paths from input to output, where they end, and what is zero."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.derivatives.modes import way_of
from primgraph.derivatives.request import Request
from primgraph.errors import ArgumentError, BuildError, FeedError, NumericalError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.html_tables import Row, Sheet, Tabled
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Primitive
from primgraph.ir.rebuild import full_value
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.operators.variable import Variable
from primgraph.program.finite import Walk, format_range
from primgraph.program.inputs import check_names, input_values
from primgraph.program.program import Program, program_of
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.edits import bind

Array: TypeAlias = "np.ndarray[Any, Any]"

_HEAD = ("ends at", "because it", "line")

# Maximum number of listed ends of paths.
_MANY = 8


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """Equation at which paths from input to output end for derivatives, with the reason."""

    op: str
    why: str
    source: Source | None

    def __str__(self) -> str:
        place = "" if self.source is None else f"   {self.source}   {self.source.text}".rstrip()
        return f"{self.op} {self.why}{place}"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Tabled):
    """Explanation of the derivative of one variable by another; it prints as text.

    `kind` is "independent" if no path leads from input to output, "cut" if all paths end at `cuts`,
    "zero" if the derivative is zero for all feeds, and else "present". There are `paths`
    differentiable paths, through `equations` equations. `at_feed` describes the derivative at the
    given arrays.

    >>> with pg.Program():
    ...     x = pg.data("x", (3,))
    ...     y = pg.sum(pg.floor(x))
    ...     why = pg.explain(y, x)
    ...
    >>> why.kind, why.paths
    ('cut', 0)
    """

    title: str
    kind: str
    reasons: tuple[str, ...]
    cuts: tuple[Cut, ...]
    paths: int
    equations: int
    at_feed: tuple[str, ...]

    def __str__(self) -> str:
        shown = [str(c) for c in self.cuts[:_MANY]]
        if len(self.cuts) > _MANY:
            shown.append(f"and {len(self.cuts) - _MANY} more")
        return "\n".join([self.title, *(f"  {t}" for t in (*self.reasons, *shown, *self.at_feed))])

    __repr__ = __str__

    def _title(self) -> str:
        return self.title

    def _sheet(self) -> Sheet:
        places = (c.source for c in self.cuts)
        lines = ["" if s is None else f"{s}   {s.text}".rstrip() for s in places]
        rows = [Row((c.op, c.why, line)) for c, line in zip(self.cuts, lines, strict=True)]
        notes = (*self.reasons, *self.at_feed)
        return Sheet(self.title, "ctc", _HEAD if rows else (), rows, len(rows), notes)


@checked_late
def explain(y: Variable, x: Variable, feed: Mapping[str, Any] | None = None) -> Explanation:
    """Explain why the derivative of `y` by `x` is None, zero, or what it is.

    The result says whether a path leads from `x` to `y`; at which equations and lines paths end,
    such as comparisons, integers, `floor` and `stop_gradient`; and how many paths remain. With a
    `feed`, as for a run, it also names the equation that makes the first NaN or infinity in the
    gradient of the sum of `y`, or where a gradient of zeros becomes zero. The program and its
    states do not change.

    Raises `ArgumentError` for objects other than variables, `NotDifferentiable` for dtypes other
    than floats, `FeedError` for a feed that does not fit.

    >>> with pg.Program():
    ...     x = pg.data("x", (3,))
    ...     found = pg.explain(pg.floor(x), x)
    >>> found.kind
    'cut'
    """
    for name, given in (("y", y), ("x", x)):
        if not isinstance(given, Variable):
            raise ArgumentError(f"explain: {name} is a variable, not {given!r:.80}")
    request = Request.from_variables("explain", [y], [x])
    search = _Search(request)
    kind, title, reasons = search.verdict()
    at_feed = () if feed is None else tuple(search.describe_gradient(feed))
    paths, equations = search.ways() if kind in ("present", "zero") else (0, 0)
    if kind == "present":
        ways = "1 way leads" if paths == 1 else f"{paths:,} ways lead"
        reasons.append(f"{ways} from input to output, through {_format_count(equations)}")
    cuts = tuple(search.cuts())
    if kind != "cut" and cuts:
        reasons.append("other ways end for derivatives at")
    return Explanation(title, kind, tuple(reasons), cuts, paths, equations, at_feed)


@final
class _Paths(Analysis[int]):
    """Numbers of differentiable paths to values, through other values than `constants`."""

    __slots__ = ("constants",)

    enters = False

    def __init__(self, constants: Collection[Value]) -> None:
        self.constants = constants

    def transfer(self, eqn: Equation, given: Facts[int], flow: Flow[int]) -> Facts[int]:
        count = sum(flow.facts.get(v, 0) for v in _differentiable(eqn))
        return [
            None if _ends(eqn, v) or v in self.constants else count or None for v in eqn.outputs
        ]


@final
class _Search:
    """Search of the paths between the input and the output of `request`, lowered to primitives.

    Unlike `request.path`, its graph has the equations before constants too, where paths end.
    """

    def __init__(self, request: Request) -> None:
        self.request, self.builder = request, request.builder
        builder, (x,), (y,) = request.builder, request.inputs, request.outputs
        self.x, self.y = x, y
        body = builder.slice([y], cut=[x])
        self.held = {v for v in builder.stopped if v is not y or v is x}
        known = {v for e in body for v in e.outputs}
        used = dict.fromkeys([*(v for e in body for v in e.inputs), x, y])
        self.inputs = [v for v in used if v not in known]
        lowered = lower(Graph(self.inputs, body, [y, *used], builder.name))
        self.graph = lowered
        self.end = lowered.outputs[0]
        moved = dict(zip(used, lowered.outputs[1:], strict=True))
        self.start = moved[x]
        self.constants = {moved[v] for v in self.held if v in moved}
        self.touched = forward_slice(lowered.body, [self.start])
        starts = {} if self.start in self.constants else {self.start: 1}
        # The values that depend on the input differentiably, with the numbers of paths.
        self.active = _Paths(self.constants).run(lowered, starts).facts
        body = backward_slice(lowered.body, [self.end])
        self.needed = {self.end}.union(*(eqn.inputs for eqn in body))

    def verdict(self) -> tuple[str, str, list[str]]:
        """Return the kind of the derivative, the title of the explanation, and its first lines."""
        pair = f"of {_value_title(self.builder, self.y)} by {_value_title(self.builder, self.x)}"
        if self.end not in self.touched:
            return "independent", f"the derivative {pair} is None: nothing leads there", [
                *self._uses(), *self._depends()
            ]  # fmt: skip
        if self.start in self.constants:
            why = "the input has stop_gradient set, so that it counts as a constant"
            return "cut", f"the derivative {pair} is None: {why}", []
        path, gradient = self.request.path, None
        if path.wrt:
            gradient = clean_up(bind(path.vjp(whole=True), {path.outside: 1.0}))
        if self.end not in self.active:
            what = "None" if gradient is None else "zero everywhere"
            return "cut", f"the derivative {pair} is {what}: all that leads there ends at", []
        if gradient is not None and _is_zero(gradient):
            reason = "what the ways contribute cancels, or is multiplied by zero"
            return "zero", f"the derivative {pair} is zero everywhere: {reason}", []
        count = 0 if gradient is None else len(gradient)
        way, own = way_of(self.request)
        reasons = [f"it is taken by {way}"] if way else []
        if own is None and way:
            return (
                "present",
                f"the derivative {pair} takes less than {_format_count(count)}",
                reasons,
            )
        counted = _format_count(count if own is None else own)
        return "present", f"the derivative {pair} takes {counted}", reasons

    def _uses(self) -> list[str]:
        """Describe where the input is used."""
        users = [e for e in self.builder.body if self.x in e.inputs]
        if not users:
            return ["the input is used nowhere"]
        places = dict.fromkeys(f"{e.op.name} at {e.source}" for e in users if e.source)
        return [f"the input is used in {', '.join(list(places)[:_MANY])}"]

    def _depends(self) -> list[str]:
        """Describe what the output depends on instead."""
        used = [v for v in self.inputs if v is not self.x and v in self.builder.declared_at]
        if not used:
            return ["the output is a constant"]
        listed = [f"{v.hint!r} of {self.builder.declared_at[v]}" for v in used[:_MANY]]
        return [f"the output depends on {', '.join(listed)}"]

    def cuts(self) -> list[Cut]:
        """Return the equations between input and output whose derivatives are zero or undefined."""
        found: dict[Cut, None] = {}
        for eqn in self.graph.body:
            if self.active.keys().isdisjoint(eqn.inputs) or self.needed.isdisjoint(eqn.outputs):
                continue
            for value in eqn.outputs:
                if value not in self.active and value in self.needed:
                    why = _ends(eqn, value) or "has stop_gradient set: it counts as a constant"
                    found[Cut(eqn.op.name, why, eqn.source)] = None
        return list(found)

    def ways(self) -> tuple[int, int]:
        """Return the numbers of differentiable paths to the output, and of equations on them."""
        through = [
            eqn
            for eqn in self.graph.body
            if not self.active.keys().isdisjoint(_differentiable(eqn))
            and not self.needed.isdisjoint(eqn.outputs)
        ]
        return self.active.get(self.end, 0), len(through)

    def describe_gradient(self, feed: Mapping[str, Any]) -> list[str]:
        """Describe the gradient at `feed`, and the equation that made it NaN or zero."""
        path = self.request.path
        if not path.wrt:
            return []
        vjp = path.vjp(whole=True)
        walk = Walk(vjp)
        try:
            arrays = self._values(path.free[: path.outside], feed)
            (gradient,) = walk.results([*arrays, np.ones(self.y.shape, self.y.dtype)])
        except NumericalError as error:
            return [f"at the feed: {error.message}", *error.origin]
        zeros = gradient.size - int(np.count_nonzero(gradient))
        if zeros < gradient.size or not zeros:
            some = f", {zeros} of {gradient.size} elements are zero" if zeros else ""
            return [f"at the feed: it is {format_range(gradient)}{some}"]
        return ["at the feed: all of it is zero", *_describe_vanishing(walk, vjp.inputs[-1])]

    def _values(self, values: Sequence[Value], feed: Mapping[str, Any]) -> list[Array]:
        """Evaluate `values` of the program at `feed`."""
        program = _program(self.builder)
        body = self.builder.slice(values)
        used = {v for e in body for v in e.inputs}.union(values)
        inputs = [v for v in self.builder.inputs if v in used]
        if program is not None:
            check_names(program, feed, [v.hint for v in inputs if v not in program.states])
            arrays = input_values(program, inputs, feed)
        elif missing := [v.hint for v in inputs if v.hint not in feed]:
            raise FeedError(f"feed: missing {', '.join(map(repr, missing))}")
        else:
            arrays = [as_feed(feed[v.hint], v.type, v.hint) for v in inputs]
        return Walk(lower(Graph(inputs, body, values))).results(arrays)


def _describe_vanishing(walk: Walk, seed: Value) -> list[str]:
    """Describe the equation that turns cotangents into zeros, with its operands."""
    carrying = {seed}
    for eqn in walk.graph.body:
        if carrying.isdisjoint(eqn.inputs):
            continue
        carrying.update(v for v in eqn.outputs if walk.known[v].any())
        for value in eqn.outputs:
            if value.type.size and not walk.known[value].any():
                return [f"{eqn.op.name} makes it zero", *walk.origin(eqn), *walk.operands(eqn)]
    return []


def _differentiable(eqn: Equation) -> tuple[Value, ...]:
    """Return the operands of `eqn` that derivatives pass through."""
    if eqn.op.own_slope:
        return eqn.inputs[1:]
    if eqn.op.formal or not isinstance(eqn.op, Primitive):
        return eqn.inputs[:1] if eqn.op.formal else eqn.inputs
    return tuple(eqn.op.moving(eqn.inputs))


def _ends(eqn: Equation, value: Value) -> str:
    """Return why no derivative passes from the operands of `eqn` to `value`; empty if one does."""
    if eqn.op.stops:
        return "counts as a constant"
    if value.dtype.kind == "b":
        return "gives booleans, which have no derivative"
    if not value.type.is_inexact:
        return f"gives integers, {value.type}, which have no derivative"
    if eqn.op.formal and not eqn.op.own_slope:
        return "is a derivative that does not change any more"
    if isinstance(eqn.op, Primitive) and eqn.op.constant:
        return "is constant between jumps, so that its derivative is zero"
    return ""


def _is_zero(gradient: Graph) -> bool:
    """Return whether the only output is known to be zero."""
    builder = Builder()
    inputs = [builder.input(v.type) for v in gradient.inputs]
    (found,) = builder.inline(gradient, inputs)
    return full_value(builder, found) == 0


def _format_count(equations: int) -> str:
    return "1 equation" if equations == 1 else f"{equations} equations"


def _value_title(builder: Builder, value: Value) -> str:
    """Return the title of a value: its name, or the line where it was computed."""
    eqn = builder.definition(value)
    if value.hint:
        return f"{value.hint!r} {value.type}"
    return f"{value.type}" if eqn is None else f"{value.type} of {eqn.source}"


def _program(builder: Builder) -> Program | None:
    try:
        return program_of(Variable(builder, builder.inputs[0]))
    except BuildError:
        return None
