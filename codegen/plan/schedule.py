"""The schedule: which equations run, in which order, and how long each value is needed.

Emitters consume a schedule and the cards, and nothing else of the graph: this is where another
backend would start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, final

from primgraph.base.user_lines import Source
from primgraph.errors import CompileError
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.primitive import Primitive
from primgraph.ir.sizes import params_at, type_at
from primgraph.ir.slices import backward_slice
from primgraph.ir.types import Shape, TensorType
from primgraph.ir.views import Expand, Reshape, View, expanded, keeps_order

# No variables for sizes: they stand for themselves.
NONE: Mapping[str, int] = MappingProxyType({})

# Equations in one generated function; longer ones would compile in more than linear time.
CHUNK = 1000


@final
class Form:
    """What steps have in common that differ in their values only: op, parameters, types.

    `seen` has, for a view, how each result sees the operand.
    """

    __slots__ = ("op", "operands", "params", "results", "seen")

    def __init__(self, eqn: Equation, sizes: Mapping[str, int] = NONE) -> None:
        assert isinstance(eqn.op, Primitive)
        self.op = eqn.op
        self.params = params_at(eqn.kwargs, sizes) if sizes else eqn.kwargs
        self.operands = tuple([type_at(v.type, sizes) for v in eqn.inputs])
        self.results = tuple([type_at(v.type, sizes) for v in eqn.outputs])
        self.seen: tuple[View | None, ...] = ()
        if self.op.is_view:
            (x,), count = self.operands, len(self.results)
            self.seen = tuple([self.op.seen(k, x, self.params) for k in range(count)])


class Step(NamedTuple):
    """One equation to run; values are numbers."""

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
    def operands(self) -> tuple[TensorType, ...]:
        return self.form.operands

    @property
    def results(self) -> tuple[TensorType, ...]:
        return self.form.results

    def giving(self, shape: Shape) -> Step:
        """The same step, written so that its first result has another shape."""
        form = copy(self.form)
        first, *others = form.results
        form.results = (TensorType(shape, first.dtype), *others)
        return self._replace(form=form)


def seen_shape(step: Step, k: int) -> Shape:
    """The shape of result `k` of a view, before NumPy's broadcasting repeats it."""
    how, shape = step.form.seen[k], step.operands[0].shape
    if how is None:
        return shape
    return expanded(how, shape) if isinstance(how, Expand) else step.results[k].shape


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order, and for each value, by number, what emitters ask about it.

    `uses` counts readers, an output of the graph being one more. `root` is the value whose
    storage a view shares, the value itself for all others. `last` is the last step that reads a
    root or a view of it; the number of steps for what is read at the end, -1 for what never is.
    `contiguous` tells whether the elements lie in row-major order without gaps.
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
    contiguous: tuple[bool, ...]

    def is_view(self, value: int) -> bool:
        return self.root[value] != value

    def chunks(self) -> list[range]:
        """Ranges of steps, one a generated function; at least one."""
        count = len(self.steps)
        return [range(i, min(i + CHUNK, count)) for i in range(0, max(count, 1), CHUNK)]

    def reordered(self, order: Sequence[int]) -> Schedule:
        """The same steps in another order, in which each still follows what it reads."""
        steps = [self.steps[i] for i in order]
        return replace(self, steps=tuple(steps), last=_last(steps, self.outputs, self.root))


def schedule(graph: Graph, sizes: Mapping[str, int] = NONE) -> Schedule:
    """The steps that the outputs of `graph` need, in its own order.

    In types and parameters `sizes`, which are variables, stand for those of the graph.

    Raises `CompileError` for an op that is not a primitive.
    """
    number = graph.numbering()
    forms: dict[Any, Form] = {}
    steps = [
        Step(
            e,
            tuple([number[v] for v in e.inputs]),
            tuple([number[v] for v in e.outputs]),
            form,
            form.op,
        )
        for e in _needed(graph)
        for form in (_form_of(e, forms, sizes),)
    ]
    types = tuple([type_at(v.type, sizes) for v in number])
    outputs = tuple([number[v] for v in graph.outputs])
    uses = [0] * len(types)
    for step in steps:
        for value in step.inputs:
            uses[value] += 1
    for value in outputs:
        uses[value] += 1
    root, contiguous = _storage(steps, len(types))
    return Schedule(
        name=graph.name,
        types=types,
        hints=tuple([v.hint for v in number]),
        inputs=len(graph.inputs),
        steps=tuple(steps),
        outputs=outputs,
        uses=tuple(uses),
        root=root,
        last=_last(steps, outputs, root),
        contiguous=contiguous,
    )


def _form_of(eqn: Equation, forms: dict[Any, Form], sizes: Mapping[str, int]) -> Form:
    """The form of `eqn`, one object for all equations that are alike.

    Parameters are told apart by identity: equal ones of equations from one builder are one object,
    and others may differ in a sign that equality does not see.
    """
    key = (eqn.op, id(eqn.params), *[v.type for v in eqn.inputs])
    form = forms.get(key)
    if form is None:
        form = forms[key] = Form(eqn, sizes)
    return form


def _needed(graph: Graph) -> list[Equation]:
    for eqn in graph.body:
        if not isinstance(eqn.op, Primitive):
            raise CompileError(
                f"{eqn.op.name} is not a primitive, so no code can be generated for it",
                origin=() if eqn.source is None else (f"{eqn.source}   {eqn.source.text}",),
                hint="lower the graph first",
            )
    return backward_slice(graph.body, graph.outputs)


def _storage(steps: list[Step], count: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Of each value the root, and whether it is contiguous."""
    root = list(range(count))
    contiguous = [True] * count
    for step in steps:
        form = step.form
        if not form.seen:
            continue
        x = step.inputs[0]
        # Elements that are not in order are copied to be in another shape; whether they are may
        # depend on sizes.
        reshaped = any(isinstance(how, Reshape) for how in form.seen)
        if not contiguous[x] and reshaped and not form.operands[0].names:
            continue
        for value, how, type in zip(step.outputs, form.seen, form.results, strict=True):
            root[value] = root[x]
            kept = keeps_order(how, form.operands[0].shape, type.shape)
            contiguous[value] = type.size == 0 or (contiguous[x] and kept)
    return tuple(root), tuple(contiguous)


def _last(steps: list[Step], outputs: tuple[int, ...], root: tuple[int, ...]) -> tuple[int, ...]:
    last = [-1] * len(root)
    for i, step in enumerate(steps):
        for value in step.inputs:
            last[root[value]] = i
    for value in outputs:
        last[root[value]] = len(steps)
    return tuple(last)
