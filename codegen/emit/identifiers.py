"""What values are called in readable code: by the names that the user's lines give them.

A plain line such as `total = pg.sum(x)` names the value that it ends in. What is known of results
names these, and derivatives have the name of what they are the tangents or cotangents of.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.emit.names import is_safe
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.ir.frontend.result_names import Title, assignment
from primgraph.ir.primitive import Op, loaded
from primgraph.ir.types import TensorType
from primgraph.primitives.elementwise import (
    abs_,
    add,
    cast,
    div,
    integer_pow,
    mul,
    neg,
    power,
    rsqrt,
    sqrt,
    sub,
)
from primgraph.primitives.indexing import gather
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.logic import select
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    permute,
    reshape,
    reverse,
    slice_,
    split,
)

# A line of the user's, by its file and number.
Place: TypeAlias = tuple[str, int]

# How often names of derivatives are carried on to derivatives of these.
_ORDERS = 2

# The primitives that an operation of Python's may be rewritten into.
_SUMS: frozenset[Op] = frozenset({add, sub, neg})
_PRODUCTS: frozenset[Op] = frozenset({mul, div, integer_pow, power, sqrt, rsqrt, neg})
_KINDS: dict[type[ast.AST], frozenset[Op]] = {
    ast.Add: _SUMS,
    ast.Sub: _SUMS,
    ast.Mult: _PRODUCTS,
    ast.Div: _PRODUCTS,
    ast.Pow: _PRODUCTS,
    ast.MatMult: frozenset({matmul}),
    ast.USub: frozenset({neg, sub, mul}),
}

# The primitives that a part of an array may be.
_PARTS: frozenset[Op] = frozenset({slice_, gather, split, reverse, reshape, broadcast, permute})

# What functions are as primitives, where these are not called as they are.
_CALLED: dict[str, Op] = {
    "sum": reduce_sum,
    "prod": reduce_prod,
    "max": reduce_max,
    "amax": reduce_max,
    "min": reduce_min,
    "amin": reduce_min,
    "where": select,
    "concatenate": concat,
    "astype": cast,
    "square": mul,
    "absolute": abs_,
    "negative": neg,
    "subtract": sub,
    "multiply": mul,
    "divide": div,
    "dot": matmul,
    "broadcast_to": broadcast,
    "transpose": permute,
    "take": gather,
}


class Operation(NamedTuple):
    """What a line does last: the primitives that it may be, the operator, how often it is there.

    `ops` is empty for a function that is neither a primitive nor an operator.
    """

    ops: frozenset[Op]
    operator: str
    times: int


def called(schedule: Schedule, titles: Sequence[Title], keys: Sequence[str]) -> dict[int, str]:
    """A safe name for each value that has one in the user's terms; two may have the same.

    `titles` and `keys` tell what results are, and where they stand in what is returned.
    """
    found = _Titles(schedule)
    found.of_hints()
    found.of_lines()
    found.of_results(titles, keys)
    for order in range(1, _ORDERS + 1):
        if order in found.orders:
            found.of_derivatives(order)
    if found.orders:
        found.of_inputs()
    return found.names


@lru_cache(maxsize=4096)
def _assigned(line: str) -> tuple[str, Operation] | None:
    """The name that a line of Python gives to what it does last, and what that is.

    None for a line that names nothing, or more than one value.
    """
    found = assignment(line)
    last = None if found is None else _last_operation(found[1])
    return None if found is None or last is None else (found[0], last)


def _last_operation(expression: ast.expr) -> Operation | None:
    """What an expression does last; None where it may have several values, or computes none."""
    if any(isinstance(n, ast.Lambda) for n in ast.walk(expression)):
        return None
    if isinstance(expression, ast.Call):
        name = _function(expression)
        calls = [n for n in ast.walk(expression) if isinstance(n, ast.Call)]
        op = _CALLED.get(name) or loaded().get(name)
        if op is not None:
            return Operation(frozenset({op}), name, sum(_function(n) == name for n in calls))
        # Of what a function computes that is not known, nothing else of the line may be a part.
        arguments = [*expression.args, *(k.value for k in expression.keywords)]
        plain = all(isinstance(a, ast.Name | ast.Attribute | ast.Constant) for a in arguments)
        return Operation(frozenset(), name, 1) if plain else None
    if isinstance(expression, ast.Subscript):
        return Operation(_PARTS, "", 0)
    if isinstance(expression, ast.Attribute):
        return Operation(_PARTS, "", 0) if expression.attr in ("T", "mT") else None
    kinds = _kind_of(expression)
    same = [n for n in ast.walk(expression) if kinds and _kind_of(n) == kinds]
    return Operation(kinds, "", len(same)) if same else None


def _kind_of(node: ast.AST) -> frozenset[Op]:
    """The primitives that an operator may be; none for what is no operator."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return _KINDS.get(type(node.op), frozenset())
    return frozenset()


def _function(call: ast.Call) -> str:
    name: str = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name


@final
class _Titles:
    """Names for the values of a schedule, as far as they are found."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.names: dict[int, str] = {}
        self.made: dict[int, Step] = {v: s for s in schedule.steps for v in s.outputs}
        self.lines: dict[Place, list[Step]] = defaultdict(list)
        self.readers: dict[int, list[Step]] = defaultdict(list)
        # What each line reads, and makes, as a derivative of some order.
        self.read: dict[tuple[Place, int, str], dict[int, None]] = defaultdict(dict)
        self.written: dict[tuple[Place, int, str], list[int]] = defaultdict(list)
        self.types_read: dict[Place, Counter[TensorType]] = {}
        self.orders: set[int] = set()
        self.outputs = frozenset(schedule.outputs)
        # A derivative alone is what is returned, and needs no name.
        self.alone = schedule.outputs if len(schedule.outputs) == 1 else ()
        for step in schedule.steps:
            for value in step.inputs:
                self.readers[value].append(step)
            source = step.eqn.source
            if source is not None and source.is_derived:
                self._enter_derived(step, source)
            elif source is not None:
                self.lines[_place(source)].append(step)

    def _enter_derived(self, step: Step, source: Source) -> None:
        place = _place(source)
        self.orders.add(source.order)
        key = (place, source.order, source.role)
        self.read[key].update(dict.fromkeys(step.inputs))
        self.written[key] += step.outputs

    def name(self, value: int, name: str) -> None:
        if is_safe(name) and value not in self.names:
            self.names[value] = name

    def of_hints(self) -> None:
        """Names that the user gave to values themselves, as inputs have them."""
        for value, hint in enumerate(self.schedule.hints):
            if hint:
                self.name(value, hint.replace(".", "_"))

    def of_results(self, titles: Sequence[Title], keys: Sequence[str]) -> None:
        """New values of states, and gradients, by what they are of; others by their keys."""
        for value, title in zip(self.schedule.outputs, titles, strict=False):
            if title.state:
                self.name(value, f"new_{title.state.replace('.', '_')}")
            elif title.by and not self.alone:
                self.name(value, f"{title.by.replace('.', '_')}_bar")
        for value, key in zip(self.schedule.outputs, keys, strict=True):
            self.name(value, key.replace(".", "_"))

    def of_lines(self) -> None:
        """The names to which lines assign what they compute."""
        for place, steps in self.lines.items():
            source = steps[0].eqn.source
            found = _assigned(source.text) if source is not None and source.text else None
            if found is None:
                continue
            name, last = found
            values = [v for s in steps for v in s.outputs if self._is_read_outside(v, place)]
            if not values and last.ops:
                values = list(steps[-1].outputs)
            # Not all that a line computes is needed, and what is left of it may stand in other
            # lines, too. So each operation of that kind in the text has to be there.
            complete = sum(s.op in last.ops for s in steps) >= last.times
            values = [v for v in values if self._may_be_last(v, steps[0], last, complete)]
            if len(values) == 1:
                self.name(values[0], name)

    def _is_read_outside(self, value: int, place: Place) -> bool:
        """Whether anything but the line itself, and derivatives of it, needs a value."""
        if value in self.outputs:
            return True
        readers = (s.eqn.source for s in self.readers[value])
        return any(s is None or _place(s) != place for s in readers)

    def _may_be_last(self, value: int, line: Step, last: Operation, complete: bool) -> bool:
        """Whether a value is what its line does last, which has all operations of that kind."""
        step = self.made[value] if last.ops == _PARTS else self._before_views(value, line)
        eqn = step.eqn
        operator = eqn.source.operator if eqn.source is not None else ""
        if operator:
            return operator == last.operator or not last.ops
        if not last.ops:
            return True
        return complete and step.op in last.ops

    def _before_views(self, value: int, line: Step) -> Step:
        """The step of a line that computes a value, of which a view may be all that is read."""
        step = self.made[value]
        while self.schedule.is_view(step.outputs[0]) and step.inputs[0] in self.made:
            before = self.made[step.inputs[0]]
            if before.source != line.source:
                break
            step = before
        return step

    def of_derivatives(self, order: int) -> None:
        """Tangents and cotangents of that order, of values with a name, where there is one each."""
        for value, name in list(self.names.items()):
            step = self.made.get(value)
            source = None if step is None else step.eqn.source
            if source is None or (source.order if source.is_derived else 0) != order - 1:
                continue
            place = _place(source)
            self._name_alone(self._cotangents(value, place, order), f"{name}_bar")
            self._name_alone(self._tangents(value, place, order), f"{name}_dot")

    def _name_alone(self, values: Iterable[int], name: str) -> None:
        found = list(values)
        if len(found) == 1 and found[0] not in self.alone:
            self.name(found[0], name)

    def _cotangents(self, value: int, place: Place, order: int) -> list[int]:
        """What reverse mode brings from the lines that read a value to the one that computes it.

        What comes from elsewhere is handed through: the cotangent of something else, too.
        """
        readers = {self._place_of(v) for s in self.readers[value] for v in s.outputs} - {place}
        return [
            c
            for c in self.read.get((place, order, "cotangent"), ())
            if self._fits(c, value)
            and self._is_derived(c, order, "cotangent")
            and self._place_of(c) in readers
        ]

    def _tangents(self, value: int, place: Place, order: int) -> list[int]:
        """What forward mode hands on from the line that computes a value to others."""
        return [
            t
            for t in self.written.get((place, order, "tangent"), ())
            if self._fits(t, value) and self._is_read_outside(t, place)
        ]

    def of_inputs(self) -> None:
        """Gradients by inputs that are no results, as an optimizer reads them."""
        first = Counter(self.names.values())
        for value in range(self.schedule.inputs):
            name = self.names.get(value)
            if name is None or f"{name}_bar" in first:
                continue
            self._name_alone(self._gradients(value), f"{name}_bar")

    def _gradients(self, value: int) -> list[int]:
        """What a line that reads an input makes of its type, and derivatives do not read."""
        places = dict.fromkeys(
            _place(s.eqn.source)
            for s in self.readers[value]
            if s.eqn.source is not None and not s.eqn.source.is_derived
        )
        found = []
        for place in places:
            made = self.written.get((place, 1, "cotangent"), ())
            if self._types_read(place)[self.schedule.types[value]] == 1:
                found += [g for g in made if self._fits(g, value) and self._is_an_end(g, place)]
        return found

    def _types_read(self, place: Place) -> Counter[TensorType]:
        """How many inputs of each type a line reads."""
        if place not in self.types_read:
            read = {v for s in self.lines[place] for v in s.inputs if v < self.schedule.inputs}
            self.types_read[place] = Counter(self.schedule.types[v] for v in read)
        return self.types_read[place]

    def _is_an_end(self, value: int, place: Place) -> bool:
        """Whether only what is no derivative reads a value, and stands in another line.

        A line that goes on with derivatives of what it computes reads other inputs for that.
        """
        sources = [s.eqn.source for s in self.readers[value]]
        read = bool(sources) or value in self.outputs
        return read and not any(
            s is not None and (s.is_derived or _place(s) == place) for s in sources
        )

    def _fits(self, value: int, other: int) -> bool:
        return self.schedule.types[value] == self.schedule.types[other]

    def _is_derived(self, value: int, order: int, role: str) -> bool:
        step = self.made.get(value)
        source = None if step is None else step.eqn.source
        return source is not None and (source.order, source.role) == (order, role)

    def _place_of(self, value: int) -> Place | None:
        step = self.made.get(value)
        return None if step is None or step.eqn.source is None else _place(step.eqn.source)


def _place(source: Source) -> Place:
    return source.file, source.line
