"""Names of values in readable code, taken from the user's source lines.

A plain line such as `total = pg.sum(x)` names the value of its last operation. Results are named by
their titles, and derivatives after the value that they are a tangent or cotangent of.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.targets.text.assignments import (
    PARTS,
    OperandNames,
    Operation,
    parse_assignments,
    parse_unpacking,
    written_expressions,
)
from primgraph.codegen.targets.text.names import is_safe
from primgraph.ir.frontend.result_names import Title, target_name
from primgraph.ir.types import BOOL, TensorType
from primgraph.ir.views import Slice

# A source line, by file and number.
Place: TypeAlias = tuple[str, int]

# Order and role of the cotangents of a gradient.
_FIRST = (1, "cotangent")
# Maximum order of derivatives that get names.
_ORDERS = 2


def name_values(schedule: Schedule, titles: Sequence[Title], keys: Sequence[str]) -> dict[int, str]:
    """Return safe names of values in the user's terms; two values may have the same.

    `titles` and `keys` describe the results, and their positions in the return value.
    """
    found = _Titles(schedule)
    found.use_hints()
    found.use_returned_names(titles)
    _Assignments(found).name_all()
    found.use_result_titles(titles, keys)
    for order in range(1, _ORDERS + 1):
        if order in found.orders:
            found.name_derivatives(order)
    if found.orders:
        found.name_gradients()
        found.name_cotangents_of_lines()
    return found.names


def function_name(step: Step, called: Mapping[int, str]) -> str:
    """Return a name for the function of a value that has a name in `called`: `tanh_x`."""
    if len(step.inputs) != 1 or not step.op.elementwise or step.params or step.op.stops:
        return ""
    # Operators of one operand are linear, or of booleans.
    if step.op.linear_operands(1, step.params) or step.results[0].dtype == BOOL:
        return ""
    name = called.get(step.inputs[0], "")
    return f"{step.op.name}_{name}" if name else ""


@final
class _Titles:
    """Names for the values of a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.names: dict[int, str] = {}
        # Names of several values, as their line has run several times.
        self.repeated: set[str] = set()
        self.made: dict[int, Step] = {v: s for s in schedule.steps for v in s.outputs}
        self.lines: dict[Place, list[Step]] = defaultdict(list)
        self.readers: dict[int, list[Step]] = defaultdict(list)
        # The values that each line reads and computes, by order and role of the derivative.
        self.read: dict[tuple[Place, int, str], dict[int, None]] = defaultdict(dict)
        self.written: dict[tuple[Place, int, str], list[int]] = defaultdict(list)
        self.types_read: dict[Place, Counter[TensorType]] = {}
        self.orders: set[int] = set()
        self.texts: dict[Place, str] = {}
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
        self.texts[place] = source.text
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
        for step in self.schedule.steps:
            if step.eqn.array is not None:
                self.name(step.outputs[0], step.params["value"].name)

    def use_returned_names(self, titles: Sequence[Title]) -> None:
        """Name results by the variables that the user's function returns."""
        for value, title in zip(self.schedule.outputs, titles, strict=False):
            if title.name:
                self.name(value, title.name)

    def use_result_titles(self, titles: Sequence[Title], keys: Sequence[str]) -> None:
        """Name new states and gradients by their titles, other results by their keys."""
        for value, title in zip(self.schedule.outputs, titles, strict=False):
            if title.state:
                self.name(value, f"new_{title.state.replace('.', '_')}")
            elif title.by and not self.alone:
                self.name(value, f"{title.by.replace('.', '_')}_bar")
        for value, key in zip(self.schedule.outputs, keys, strict=True):
            # Positions in containers are no names.
            parts = [part for part in key.split(".") if not part.isdigit()]
            self.name(value, "_".join(parts))

    def is_read_outside(self, value: int, place: Place) -> bool:
        """Return whether a value is used beyond its own line and derivatives of it.

        Slices in derivatives do not count: the line may be that of a slice of this slice.
        """
        if value in self.outputs:
            return True
        readers = (s.eqn.source for s in self.readers[value] if not _is_derived_slice(s))
        return any(s is None or _place(s) != place for s in readers)

    def name_derivatives(self, order: int) -> None:
        """Name tangents and cotangents of that order, if unique, after their named values."""
        for value, name in list(self.names.items()):
            if name in self.repeated:
                continue
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
            if self._fits(t, value) and self.is_read_outside(t, place)
        ]

    def name_gradients(self) -> None:
        """Name gradients by inputs that are not results, as an optimizer reads them."""
        first = Counter(self.names.values())
        for value in range(self.schedule.inputs):
            name = self.names.get(value)
            if name is None or f"{name}_bar" in first:
                continue
            self._name_alone(self._gradients(value), f"{name}_bar")

    def name_cotangents_of_lines(self) -> None:
        """Name cotangents by the variables of lines whose values are not computed here.

        The body of a transposed loop has the cotangents of the values of another loop.
        """
        for (place, order, role), read in list(self.read.items()):
            if (order, role) != _FIRST or place in self.lines:
                continue
            entering = [
                c for c in read if self._is_derived(c, *_FIRST) and self._place_of(c) != place
            ]
            if len(entering) == 1:
                name = target_name(self.texts[place])
                self._name_alone(entering, f"{name}_bar" if name else "")

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


@final
class _Assignments:
    """Names of values that lines of the user assign."""

    def __init__(self, titles: _Titles) -> None:
        self.titles, self.schedule, self.made = titles, titles.schedule, titles.made
        # Names of what lines read.
        self.later: dict[int, str] = {}

    def name_all(self) -> None:
        """Use the names to which lines assign values, and then those that lines read."""
        for place, steps in self.titles.lines.items():
            source = steps[0].eqn.source
            line = "" if source is None else source.text
            self._name_operands(line, place, steps)
            unpacked = parse_unpacking(line) if line else ()
            if unpacked:
                self._name_parts(unpacked, steps)
                continue
            found = parse_assignments(line) if line else ()
            for last in dict.fromkeys(last for _, last in found):
                names = [name for name, other in found if other == last]
                if all(last == other or last.ops != other.ops for _, other in found):
                    self._name_last(names, last, place, steps, single=len(found) == 1)
        for operand, name in self.later.items():
            self.titles.name(operand, name)

    def _name_operands(self, line: str, place: Place, steps: Sequence[Step]) -> None:
        """Name what a line reads, if its steps are the operations that are written."""
        expressions = written_expressions(line) if line else ()
        if not expressions:
            return
        operands = OperandNames(steps)
        values: dict[str, set[int]] = defaultdict(set)
        outside = [v for s in steps for v in s.outputs if self.titles.is_read_outside(v, place)]
        for value in outside:
            bound = next(filter(None, (operands.bound(x, value) for x in expressions)), None)
            for name, operand in (bound or {}).items():
                values[name].add(operand)
        for name, found in values.items():
            for operand in found:
                made = self.made.get(operand)
                # Numbers and parts of arrays are written where they are read.
                if made is not None and made.number is None and not made.op.is_view:
                    self.later[operand] = name
            if len(found) > 1:
                self.titles.repeated.add(name)

    def _name_last(
        self,
        names: Sequence[str],
        last: Operation,
        place: Place,
        steps: Sequence[Step],
        *,
        single: bool,
    ) -> None:
        """Name the values that the last operation of a line computes, whenever the line runs.

        If it assigns several `names` by such operations, they are named in turn.
        """
        values = [v for s in steps for v in s.outputs if self.titles.is_read_outside(v, place)]
        if not values and last.ops and single:
            values = list(steps[-1].outputs)
        # Dead operations are missing, and the remaining ones may belong to other lines, too. So
        # each operation of that kind in the text has to exist.
        complete = sum(s.op in last.ops for s in steps) >= last.times
        values = [v for v in values if self._may_be_last(v, steps[0], last, complete)]
        if len(values) != 1 or len(names) > 1:
            ends = [v for v in values if self._ends_line(v, place, last)]
            ends = [v for v in ends if not self._views_one_of(v, ends)]
            values = ends if last.alone or len(ends) == 1 else []
        if len(values) % len(names):
            return
        for k, value in enumerate(values):
            self.titles.name(value, names[k % len(names)])
        if len(values) > len(names):
            self.titles.repeated.update(names)

    def _ends_line(self, value: int, place: Place, last: Operation) -> bool:
        """Return whether the primitive that an operation is computes a value last on its line."""
        step = self._skip_views(value, self.made[value])
        marked = step.eqn.source is not None and bool(step.eqn.source.operator)
        readers = (s.eqn.source for s in self.titles.readers[value] if not s.op.is_view)
        own = any(s is not None and not s.is_derived and _place(s) == place for s in readers)
        return last.computes(step.op) and not marked and not own

    def _views_one_of(self, value: int, values: Sequence[int]) -> bool:
        """Return whether a value is a view of another one of `values`."""
        while self.schedule.is_view(value) and value in self.made:
            (value,) = self.made[value].inputs
            if value in values:
                return True
        return False

    def _name_parts(self, names: Sequence[str], steps: Sequence[Step]) -> None:
        """Name the parts of a value that a line unpacks."""
        for step in steps:
            for k, value in enumerate(step.outputs if step.op.is_view else ()):
                part = _part(step, k)
                if part is None or part[1] != len(names):
                    continue
                self.titles.name(value, names[part[0]])
                # A part of one element is read without its axis.
                for reader in self.titles.readers[value]:
                    if reader in steps and reader.op.is_view and not reader.results[0].shape:
                        self.titles.name(reader.outputs[0], names[part[0]])

    def _may_be_last(self, value: int, line: Step, last: Operation, complete: bool) -> bool:
        """Return whether a value may be its line's last operation, given that line's operations."""
        step = self.made[value] if last.ops == PARTS else self._skip_views(value, line)
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


def _place(source: Source) -> Place:
    return source.file, source.line


def _is_derived_slice(step: Step) -> bool:
    return step.eqn.is_derived and step.op.is_view and isinstance(step.form.seen[0], Slice)


def _part(step: Step, k: int) -> tuple[int, int] | None:
    """Return the number of a part of an array in equal parts, and their count, if it is one."""
    how, whole, part = step.form.seen[k], step.operands[0].shape, step.results[k].shape
    if not isinstance(how, Slice) or len(whole) != len(part):
        return None
    cut = [a for a, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]
    if len(cut) != 1 or type(whole[cut[0]]) is not int or type(part[cut[0]]) is not int:
        return None
    (axis,) = cut
    start, _, stride = how.ranges[axis]
    size, start = part[axis], start or 0
    start = start % whole[axis] if type(start) is int else -1
    if stride != 1 or not size or whole[axis] % size or start % size:
        return None
    return start // size, whole[axis] // size
