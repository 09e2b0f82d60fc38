"""Names of values in readable code, taken from the user's source lines.

A plain line such as `total = pg.sum(x)` names the value of its last operation. Results are named by
their titles, and derivatives after the value that they are a tangent or cotangent of.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.targets.text.names import is_safe
from primgraph.ir.frontend.result_names import Title, assignment
from primgraph.ir.primitive import Op, loaded_ops
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

# A source line, by file and number.
Place: TypeAlias = tuple[str, int]

# Maximum order of derivatives that get names.
_ORDERS = 2

# The primitives into which a Python operator may be rewritten.
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

# Primitives of functions whose names differ.
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
    """The last operation of a line: possible primitives, the operator, and its occurrences.

    `ops` is empty for a function that is neither a primitive nor an operator.
    """

    ops: frozenset[Op]
    operator: str
    times: int


def name_values(schedule: Schedule, titles: Sequence[Title], keys: Sequence[str]) -> dict[int, str]:
    """Return safe names of values in the user's terms; two values may have the same.

    `titles` and `keys` describe the results, and their positions in the return value.
    """
    found = _Titles(schedule)
    found.use_hints()
    found.use_assignments()
    found.use_result_titles(titles, keys)
    for order in range(1, _ORDERS + 1):
        if order in found.orders:
            found.name_derivatives(order)
    if found.orders:
        found.name_gradients()
    return found.names


@lru_cache(maxsize=4096)
def _parse_assignment(line: str) -> tuple[str, Operation] | None:
    """Return the name that a Python line assigns, and its last operation.

    Return None for a line that assigns no name, or more than one value.
    """
    found = assignment(line)
    last = None if found is None else _last_operation(found[1])
    return None if found is None or last is None else (found[0], last)


def _last_operation(expression: ast.expr) -> Operation | None:
    """Return the last operation of an expression; None if it has several values or none."""
    if any(isinstance(n, ast.Lambda) for n in ast.walk(expression)):
        return None
    if isinstance(expression, ast.Call):
        name = _function(expression)
        calls = [n for n in ast.walk(expression) if isinstance(n, ast.Call)]
        op = _CALLED.get(name) or loaded_ops().get(name)
        if op is not None:
            return Operation(frozenset({op}), name, sum(_function(n) == name for n in calls))
        # An unknown function may compute anything, so it has to be the only operation of the line.
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
    """Return the primitives that an operator may be; empty for other nodes."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return _KINDS.get(type(node.op), frozenset())
    return frozenset()


def _function(call: ast.Call) -> str:
    name: str = getattr(call.func, "attr", getattr(call.func, "id", ""))
    return name


@final
class _Titles:
    """Names for the values of a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.names: dict[int, str] = {}
        self.made: dict[int, Step] = {v: s for s in schedule.steps for v in s.outputs}
        self.lines: dict[Place, list[Step]] = defaultdict(list)
        self.readers: dict[int, list[Step]] = defaultdict(list)
        # The values that each line reads and computes, by order and role of the derivative.
        self.read: dict[tuple[Place, int, str], dict[int, None]] = defaultdict(dict)
        self.written: dict[tuple[Place, int, str], list[int]] = defaultdict(list)
        self.types_read: dict[Place, Counter[TensorType]] = {}
        self.orders: set[int] = set()
        self.outputs = frozenset(schedule.outputs)
        # A single derivative is the return value, and needs no name.
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

    def use_hints(self) -> None:
        """Use names that the user gave to values, such as inputs."""
        for value, hint in enumerate(self.schedule.hints):
            if hint:
                self.name(value, hint.replace(".", "_"))

    def use_result_titles(self, titles: Sequence[Title], keys: Sequence[str]) -> None:
        """Name new states and gradients by their titles, other results by their keys."""
        for value, title in zip(self.schedule.outputs, titles, strict=False):
            if title.state:
                self.name(value, f"new_{title.state.replace('.', '_')}")
            elif title.by and not self.alone:
                self.name(value, f"{title.by.replace('.', '_')}_bar")
        for value, key in zip(self.schedule.outputs, keys, strict=True):
            self.name(value, key.replace(".", "_"))

    def use_assignments(self) -> None:
        """Use the names to which lines assign values."""
        for place, steps in self.lines.items():
            source = steps[0].eqn.source
            found = _parse_assignment(source.text) if source is not None and source.text else None
            if found is None:
                continue
            name, last = found
            values = [v for s in steps for v in s.outputs if self._is_read_outside(v, place)]
            if not values and last.ops:
                values = list(steps[-1].outputs)
            # Dead operations are missing, and the remaining ones may belong to other lines, too. So
            # each operation of that kind in the text has to exist.
            complete = sum(s.op in last.ops for s in steps) >= last.times
            values = [v for v in values if self._may_be_last(v, steps[0], last, complete)]
            if len(values) == 1:
                self.name(values[0], name)

    def _is_read_outside(self, value: int, place: Place) -> bool:
        """Return whether a value is used beyond its own line and derivatives of it."""
        if value in self.outputs:
            return True
        readers = (s.eqn.source for s in self.readers[value])
        return any(s is None or _place(s) != place for s in readers)

    def _may_be_last(self, value: int, line: Step, last: Operation, complete: bool) -> bool:
        """Return whether a value may be its line's last operation, given that line's operations."""
        step = self.made[value] if last.ops == _PARTS else self._skip_views(value, line)
        eqn = step.eqn
        operator = eqn.source.operator if eqn.source is not None else ""
        if operator:
            return operator == last.operator or not last.ops
        if not last.ops:
            return True
        return complete and step.op in last.ops

    def _skip_views(self, value: int, line: Step) -> Step:
        """Return the step of a line that computes a value, looking through views."""
        step = self.made[value]
        while self.schedule.is_view(step.outputs[0]) and step.inputs[0] in self.made:
            before = self.made[step.inputs[0]]
            if before.source != line.source:
                break
            step = before
        return step

    def name_derivatives(self, order: int) -> None:
        """Name tangents and cotangents of that order, if unique, after their named values."""
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
        """Return the cotangents that flow from the readers of a value to its line.

        A cotangent from elsewhere is passed through, and belongs to another value.
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
        """Return the tangents that the line of a value passes on to other lines."""
        return [
            t
            for t in self.written.get((place, order, "tangent"), ())
            if self._fits(t, value) and self._is_read_outside(t, place)
        ]

    def name_gradients(self) -> None:
        """Name gradients by inputs that are not results, as an optimizer reads them."""
        first = Counter(self.names.values())
        for value in range(self.schedule.inputs):
            name = self.names.get(value)
            if name is None or f"{name}_bar" in first:
                continue
            self._name_alone(self._gradients(value), f"{name}_bar")

    def _gradients(self, value: int) -> list[int]:
        """Return the gradients that lines reading an input compute in its type, for other lines."""
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
        """Return how many inputs of each type a line reads."""
        if place not in self.types_read:
            read = {v for s in self.lines[place] for v in s.inputs if v < self.schedule.inputs}
            self.types_read[place] = Counter(self.schedule.types[v] for v in read)
        return self.types_read[place]

    def _is_an_end(self, value: int, place: Place) -> bool:
        """Return whether a value is read, but not by derivatives or by its own line.

        A line that continues with derivatives of its values reads other inputs for that.
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
