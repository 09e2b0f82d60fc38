"""The schedule: the equations to run, their order, and the liveness of values.

Back ends use a schedule and their cards, and nothing else of the graph. A new back end starts here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, final

from primgraph.base.records import dataclass
from primgraph.base.user_lines import Source
from primgraph.errors import CompileError
from primgraph.ir.graph import COUNTED, NUMBER, SIZE, Equation, Graph, Value
from primgraph.ir.index_maps import Dependence, IndexMap
from primgraph.ir.primitive import Fact, Primitive
from primgraph.ir.sizes import params_at, type_at
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import Shape, TensorType
from primgraph.ir.views import Expand, Reshape, View, expanded_shape, keeps_order
from primgraph.primitives.control import REGIONS, Flow, Regions

# Without substitutions symbolic sizes stand for themselves.
NONE: Mapping[str, int] = MappingProxyType({})

# Parameters of loops that bound the number of steps.
_LENGTHS = {Flow.ROWS: "length", Flow.TEST: "limit"}

# Maximum number of equations in one generated function: compile time is superlinear.
CHUNK = 1000


@final
class Form:
    """The common part of equal steps: op, parameters and types.

    For a view, `seen` has the view of the operand for each result. `maps` has the index maps that
    have been asked for, by result and operand; `ties` the axes that those of the first one tie.
    """

    __slots__ = ("maps", "op", "operands", "params", "results", "seen", "ties")

    def __init__(self, eqn: Equation, sizes: Mapping[str, int] = NONE) -> None:
        assert isinstance(eqn.op, Primitive)
        self.op = eqn.op
        self.params = params_at(eqn.kwargs, sizes) if sizes else eqn.kwargs
        self.operands = tuple([type_at(v.type, sizes) for v in eqn.inputs])
        self.results = tuple([type_at(v.type, sizes) for v in eqn.outputs])
        self.seen: tuple[View | None, ...] = ()
        self.maps: dict[tuple[int, int], Dependence] = {}
        self.ties: list[dict[int, int]] = []
        if self.op.is_view:
            (x,), count = self.operands, len(self.results)
            self.seen = tuple([self.op.seen(k, x, self.params) for k in range(count)])


class Step(NamedTuple):
    """An equation to run; values are numbers."""

    eqn: Equation
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    form: Form
    op: Primitive[Any]

    @property
    def params(self) -> dict[str, Any]:
        return self.form.params

    @property
    def source(self) -> Source | None:
        return self.eqn.source and self.eqn.source.place

    @property
    def is_derived(self) -> bool:
        """Return whether it is of a derivative, where the sign of a zero is free."""
        return self.eqn.source is not None and self.eqn.source.is_derived

    @property
    def operands(self) -> tuple[TensorType, ...]:
        return self.form.operands

    @property
    def results(self) -> tuple[TensorType, ...]:
        return self.form.results

    @property
    def number(self) -> Any:
        """Number or symbolic size that all elements of the result equal, or None."""
        number = self.held(NUMBER)
        return self.held(SIZE) if number is None else number

    @property
    def regions(self) -> Regions | None:
        """Layout of operands, results and bodies of a branch, a loop or a checkpoint, else None."""
        rule = self.op.fact(REGIONS)
        return None if rule is None else rule(len(self.operands), **self.params)

    @property
    def flow(self) -> Flow | None:
        """How the step runs its bodies, None for other steps."""
        regions = self.regions
        return None if regions is None else regions.flow

    @property
    def most_trips(self) -> Any:
        """Number of steps of a loop, or its limit; None for other steps, and without a limit."""
        flow = self.flow
        return self.params[_LENGTHS[flow]] if flow in _LENGTHS else None

    def held(self, fact: Fact[str]) -> Any:
        """Return the parameter that a fact of the op names, or None."""
        name = self.op.fact(fact)
        return self.params[name] if name else None

    def dependence(self, k: int, i: int) -> Dependence:
        """Return what of operand `i` the elements of result `k` depend on."""
        maps, found = self.form.maps, self.form.maps.get((k, i))
        if found is None:
            found = self.op.dependence(k, i, self.operands, self.results, self.params)
            maps[k, i] = found
        return found

    def with_result_shape(self, shape: Shape) -> Step:
        """Return the step with another shape of its first result."""
        form = copy(self.form)
        first, *others = form.results
        form.results, form.maps, form.ties = (TensorType(shape, first.dtype), *others), {}, []
        return self._replace(form=form)


def stored_shape(step: Step) -> Shape:
    """Return the shape in which a literal is stored; it is broadcast to that of the result."""
    if step.eqn.number is not None:
        return ()
    shape, axis = step.results[0].shape, step.held(COUNTED)
    return shape if axis is None else (shape[axis], *(1 for _ in shape[axis + 1 :]))


def assigns(step: Step) -> bool:
    """Return whether the result is operand 0 with a part of it replaced by operand 1."""
    shown = step.dependence(0, 0) if step.op.moves and len(step.inputs) == 2 else None
    return isinstance(shown, IndexMap) and shown.hole is not None


def is_repetition(step: Step) -> bool:
    """Return whether the result is a view that repeats the operand along new axes, if anything."""
    return step.op.is_view and isinstance(step.form.seen[0], Expand | None)


def seen_shape(step: Step, k: int) -> Shape:
    """Return the shape of result `k` of a view, before broadcasting."""
    how, shape = step.form.seen[k], step.operands[0].shape
    if how is None:
        return shape
    return expanded_shape(how, shape) if isinstance(how, Expand) else step.results[k].shape


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order, and the properties of values by number.

    `uses` counts uses, including those as an output. `root` is the value whose storage a view
    aliases, else the value itself. `last` is the last step that uses a root or a view of it; the
    number of steps for outputs, -1 for unused values.
    """

    name: str
    types: tuple[TensorType, ...]
    hints: tuple[str, ...]
    inputs: int
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    uses: tuple[int, ...]
    root: tuple[int, ...]
    last: tuple[int, ...]

    def is_view(self, value: int) -> bool:
        return self.root[value] != value

    def sees(self, step: Step) -> bool:
        """Return whether a step computes nothing: its results are views, or it has none."""
        return not step.outputs or self.is_view(step.outputs[0])

    def chunks(self) -> list[range]:
        """Return ranges of steps, one per generated function; at least one."""
        count = len(self.steps)
        return [range(i, min(i + CHUNK, count)) for i in range(0, max(count, 1), CHUNK)]

    def reorder(self, order: Sequence[int]) -> Schedule:
        """Return the steps in another order, which must respect dependencies."""
        steps = [self.steps[i] for i in order]
        return replace(self, steps=tuple(steps), last=_last(steps, self.outputs, self.root))


def schedule(graph: Graph, sizes: Mapping[str, int] = NONE) -> Schedule:
    """Return the schedule of the equations that the outputs of `graph` need, in its order.

    `sizes` substitutes variables for the symbolic sizes in types and parameters. Raises
    `CompileError` for an op that is not a primitive.
    """
    number = graph.numbering()
    types = tuple([type_at(v.type, sizes) for v in number])
    hints = tuple([v.hint for v in number])
    return numbered_schedule(graph, _needed_equations(graph), number, types, hints, sizes)


def numbered_schedule(
    graph: Graph,
    body: Sequence[Equation],
    number: Mapping[Value, int],
    types: tuple[TensorType, ...],
    hints: tuple[str, ...],
    sizes: Mapping[str, int] = NONE,
) -> Schedule:
    """Return the schedule of the equations `body` of `graph`, whose values have these numbers."""
    forms: dict[Any, Form] = {}
    steps, at = list[Step](), number.__getitem__
    for e in body:
        form, outputs = _form_of(e, forms, sizes), e.outputs
        made = (at(outputs[0]),) if len(outputs) == 1 else tuple(map(at, outputs))
        steps.append(Step(e, tuple(map(at, e.inputs)), made, form, form.op))
    results = tuple(map(at, graph.outputs))
    uses = Counter(chain(results, *[step.inputs for step in steps]))
    root = _storage(steps, len(types))
    return Schedule(
        name=graph.name,
        types=types,
        hints=hints,
        inputs=len(graph.inputs),
        steps=tuple(steps),
        outputs=results,
        uses=tuple([uses[v] for v in range(len(types))]),
        root=root,
        last=_last(steps, results, root),
    )


def _form_of(eqn: Equation, forms: dict[Any, Form], sizes: Mapping[str, int]) -> Form:
    """Return the form of `eqn`, shared by all equal equations.

    Parameters are compared by identity: equal parameters of one builder are one object, and others
    may differ in the sign of zero, which equality does not see.
    """
    inputs, x = eqn.inputs, eqn.inputs[0].type if eqn.inputs else None
    # Most equations have one operand, or two.
    key: Any = (eqn.op, id(eqn.params), x)
    if len(inputs) > 1:
        key = (*key, *[v.type for v in inputs[1:]])
    form = forms.get(key)
    if form is None:
        form = forms[key] = Form(eqn, sizes)
    return form


def _needed_equations(graph: Graph) -> list[Equation]:
    for eqn in graph.body:
        if not isinstance(eqn.op, Primitive):
            raise CompileError(
                f"{eqn.op.name} is not a primitive, so no code can be generated for it",
                origin=() if eqn.source is None else (f"{eqn.source}   {eqn.source.text}",),
                hint="lower the graph first",
            )
    return backward_slice(graph.body, graph.outputs)


def _storage(steps: list[Step], count: int) -> tuple[int, ...]:
    """Return the root of each value."""
    root = list(range(count))
    contiguous = [True] * count
    for step in steps:
        form = step.form
        if not form.seen:
            continue
        x = step.inputs[0]
        # A reshape copies elements that are not contiguous; whether it must may depend on symbolic
        # sizes.
        reshaped = any(isinstance(how, Reshape) for how in form.seen)
        if not contiguous[x] and reshaped and not form.operands[0].names:
            continue
        for value, how, type in zip(step.outputs, form.seen, form.results, strict=True):
            root[value] = root[x]
            kept = keeps_order(how, form.operands[0].shape, type.shape)
            contiguous[value] = type.size == 0 or (contiguous[x] and kept)
    return tuple(root)


def _last(steps: list[Step], outputs: tuple[int, ...], root: tuple[int, ...]) -> tuple[int, ...]:
    last = [-1] * len(root)
    for i, step in enumerate(steps):
        for value in step.inputs:
            last[root[value]] = i
    for value in outputs:
        last[root[value]] = len(steps)
    return tuple(last)
