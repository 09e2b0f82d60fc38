"""Verifier of plans: each statement reads existing values, and no live value is overwritten."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

from primgraph.codegen.ir import places, statements
from primgraph.codegen.ir.arena import ALIGN, aligned_size
from primgraph.codegen.ir.c_extents import Place as Location
from primgraph.codegen.ir.places import Place, View, cut_of, name_of, root_of
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.statements import POINTER, Instruction, Loop, Nests, values_read
from primgraph.codegen.ir.text import text_of
from primgraph.errors import InternalError
from primgraph.ir.dims import is_open

# States of an array that exists but was not written, and of one that was filled.
_NOTHING, _FILLED = -1, -2


def verify(plan: Plan) -> Plan:
    """Verify a plan and return it. Raises `InternalError` unless all of this holds.

    Each place that is read holds the value of the step's operand. Buffers of overlapping lifetime
    do not overlap in memory, and lie in their arena. Only donated arguments are written. A turn of
    a loop writes its own rows only, and reads no other rows that the loop writes. It reads from its
    block's buffers only what it has written. Each result is in an array of its own at the end.
    """
    _Run(plan).run()
    return plan


@final
class _Memory:
    """The live ranges of bytes, sorted by their begin, each with its holder; and live slots."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.starts: list[int] = []
        self.at: dict[Any, tuple[int, Any]] = {}

    def take(self, place: Location, size: int, holder: Any) -> Any:
        """Mark a place as live, and return None, or the holder of one that it overlaps."""
        if isinstance(place, tuple):
            # Slots of symbolic size do not overlap each other, and lie behind all bytes.
            return self.at[place][1] if place in self.at else self._add(place, 0, holder)
        if not size:
            return None
        spot = bisect_left(self.starts, place)
        if spot < len(self.starts) and self.starts[spot] < place + size:
            return self.at[self.starts[spot]][1]
        if spot:
            before = self.starts[spot - 1]
            if before + self.at[before][0] > place:
                return self.at[before][1]
        self.starts.insert(spot, place)
        return self._add(place, size, holder)

    def _add(self, place: Location, size: int, holder: Any) -> None:
        self.at[place] = size, holder

    def give(self, place: Location, holder: Any) -> bool:
        """Mark a place as dead; return whether it was live, with that holder."""
        if self.at.get(place, (0, None))[1] is not holder:
            return False
        del self.at[place]
        if not isinstance(place, tuple):
            del self.starts[bisect_left(self.starts, place)]
        return True


@final
class _Run:
    """An abstract run of a plan; loops run twice, so that a turn meets the state of the last one.

    `holds` has the value in each array, by its root. `rows` has the axis of rows of all arrays that
    a loop writes; None for totals.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan, self.schedule = plan, plan.schedule
        self.arena, self.space = _Memory(plan.arena), _Memory(plan.space)
        self.holds: dict[Place, int] = {x: x.number for x in plan.arguments}
        for place in plan.constants:
            if isinstance(place, places.Constant):
                self.holds[place] = place.step.outputs[0]
        self.writable = {plan.arguments[j] for _, j in plan.options.donated}
        self.loop: Loop | None = None
        # Buffers of the block, and names of arrays that a call creates.
        self.inside: list[Place] = []
        self.named: set[str] = set()
        self.rows: dict[Place, int | None] = {}
        self.now: Instruction | None = None

    def run(self) -> None:
        returned: dict[Place, int] = {}
        for x in self.plan.body:
            self.now = x
            if isinstance(x, Loop):
                self._turns(x)
            elif isinstance(x, statements.Return):
                self._demand(
                    x.place not in returned
                    and not isinstance(root_of(x.place), places.Buffer | View),
                    "a result is not in an array of its own",
                )
                returned[x.place] = x.number
            else:
                _STEPS[x.__class__](self, x)
        self.now, outputs = None, self.schedule.outputs
        all_there = sorted(returned.values()) == list(range(len(outputs)))
        self._demand(all_there, "not all results are returned")
        for place, k in returned.items():
            right = self.holds.get(place) == self.schedule.root[outputs[k]]
            self._demand(right, f"{text_of(place)} does not hold result {k}")

    def _turns(self, loop: Loop) -> None:
        both = (*loop.body, *loop.totals)
        outs = [x.out for x in both if isinstance(x, statements.Compute | statements.Copy)]
        filled = {root_of(p): cut.axis for p in outs if (cut := cut_of(p)) is not None}
        totals = {x.total: x for x in both if isinstance(x, statements.Combine)}
        self.loop, self.rows = loop, {**filled, **dict.fromkeys(totals)}
        late = loop.region.threads == 1 or not any(x in loop.body for x in totals.values())
        self._demand(late, "a total is added to out of turn")
        for place in filled:
            self._demand(place in self.holds or _is_given(place), f"{text_of(place)} is not there")
        before = {p: self.holds.get(p, _NOTHING) for p in filled}
        for _ in range(2):
            self.space = _Memory(self.plan.space)
            self.holds.update(before)
            for x in both:
                self.now = x
                _STEPS[x.__class__](self, x)
            for place in self.inside:
                self.holds.pop(place, None)
            self.inside.clear()
        self.loop, self.rows = None, {}

    # Instructions.

    def _read(self, place: Place, value: int | None = None) -> None:
        """Check that a place may be read, and that it holds `value`, if given."""
        root = root_of(place)
        if isinstance(root, places.Number | places.Ones):
            return
        self._demand(self.holds.get(root, _NOTHING) != _NOTHING, f"{text_of(place)} is not there")
        if value is not None:
            right = self.holds[root] == self.schedule.root[value]
            self._demand(right, f"{text_of(place)} holds another value by now")
        if root in self.rows:
            axis = self.rows[root]
            own = (cut := cut_of(place)) is not None and cut.axis == axis
            self._demand(own, f"{text_of(place)} has rows of other blocks")

    def _write(self, place: Place, value: int, taken: Place | None = None) -> None:
        """Check that a place may be written: it takes over the operand `taken`, or is dead."""
        root = root_of(place)
        cut = cut_of(place) is not None
        inner = isinstance(root, places.Buffer) and root.loop >= 0
        self._demand(self.loop is None or cut or inner, "a turn writes more than its rows")
        if isinstance(root, places.Buffer) and not cut:
            if taken is None:
                self._take(root)
            self._demand(taken is None or root is taken, "the result is not where it was")
        elif isinstance(root, places.Stack):
            self._demand(root not in self.holds, f"{text_of(root)} is filled twice")
        elif isinstance(root, places.Argument):
            self._demand(root in self.writable, f"{text_of(root)} is not donated")
        else:
            there = isinstance(root, places.Result | places.Buffer) and (
                root in self.holds or _is_given(root)
            )
            copied = isinstance(root, places.Held) and self.holds.get(root) == _NOTHING
            self._demand(there or copied, f"{text_of(root)} cannot be written")
        self.holds[root] = value
        if inner:
            self.inside.append(root)

    def memory(self, buffer: places.Buffer) -> _Memory:
        return self.arena if buffer.loop < 0 else self.space

    def _take(self, buffer: places.Buffer) -> None:
        self._demand((buffer.loop >= 0) == (self.loop is not None), "a buffer of another loop")
        fault = _take_buffer(self.memory(buffer), buffer)
        self._demand(not fault, f"{text_of(buffer)} {fault}")

    def _give(self, buffer: places.Buffer) -> None:
        self._demand(self.loop is None or buffer.loop >= 0, "a turn gives back what others need")
        given = self.memory(buffer).give(buffer.offset, buffer)
        self._demand(given, f"{text_of(buffer)} is not in use")
        self.holds.pop(buffer, None)

    def _put(self, x: statements.Put) -> None:
        self._operands(x)
        self._demand(root_of(x.part) is x.out and x.out in self.holds, "a part of what?")
        self._demand(x.part.shape == x.step.results[0].shape, "the part has another shape")
        self._write(x.out, x.value)

    def _operands(self, x: statements.Compute | statements.Put | statements.Call) -> None:
        for place, value, type in zip(x.operands, x.step.inputs, x.step.operands, strict=True):
            self._read(place, value)
            shape = type.shape[type.ndim - len(place.shape) :]
            fits = len(shape) == len(place.shape) and all(
                n in (1, m) for n, m in zip(place.shape, shape, strict=True)
            )
            self._demand(fits, f"{text_of(place)} is no {type}")

    def _compute(self, x: statements.Compute) -> None:
        self._operands(x)
        taken = None if x.taken is None else root_of(x.operands[x.taken])
        self._produce(x.out, x.step.outputs[0], new=x.new, taken=taken)
        self._demand(x.out.shape == x.step.results[0].shape, "the result has another shape")
        known = {root_of(p) for p in (*x.operands, x.out)}
        for place in x.parts:
            root = root_of(place)
            if isinstance(root, places.Buffer) and root not in known:
                self._take(root)
                self._give(root)
            else:
                self._demand(root in known or not isinstance(place, View), "a part of what?")

    def _produce(self, place: Place, value: int, *, new: bool, taken: Place | None = None) -> None:
        """Check that a value is written to a place, which may be `new`."""
        if new:
            fits = isinstance(place, places.Result | places.Held) and not _is_given(place)
            fits = fits and name_of(place) not in self.named
            self._demand(fits, f"{text_of(place)} is there already")
            self.named.add(name_of(place))
            self.holds[place] = _NOTHING
        self._write(place, self.schedule.root[value], taken)

    def _call(self, x: statements.Call) -> None:
        self._operands(x)
        for place, value in zip(x.outs, x.step.outputs, strict=True):
            self._produce(place, value, new=isinstance(place, places.Result) and not place.given)

    def _see(self, x: statements.See) -> None:
        self._read(x.view, x.step.inputs[0])

    def _make(self, x: statements.Make) -> None:
        if isinstance(x.out, places.Buffer):
            self._take(x.out)
        if not isinstance(x.out, places.Argument):
            self.holds[x.out] = _NOTHING

    def _fill(self, x: statements.Fill) -> None:
        self._demand(x.out in self.holds, f"{text_of(x.out)} is not there")
        self.holds[x.out] = _FILLED

    def _copy(self, x: statements.Copy) -> None:
        self._read(x.source, x.value)
        self._produce(x.out, x.value, new=x.new)

    def _combine(self, x: statements.Combine) -> None:
        self._read(x.part)
        known = (_FILLED, self.holds[x.part])
        self._demand(self.holds.get(x.total) in known, f"{text_of(x.total)} is no such total")
        self.holds[x.total] = self.holds[x.part]

    def _release(self, x: statements.Release) -> None:
        self._give(x.buffer)

    def _demand(self, right: bool, fault: str) -> None:
        if not right:
            at = "" if self.now is None else f", at: {text_of(self.now)}"
            raise InternalError(f"plan of {self.schedule.name}: {fault}{at}\n{self.plan}")


def _take_buffer(memory: _Memory, buffer: places.Buffer) -> str:
    """Mark a buffer as live in its memory; return the fault, if there is one."""
    size = aligned_size(buffer.type.nbytes)
    if buffer.offset % ALIGN or buffer.offset + size > memory.size:
        return "lies outside of the arena"
    other = memory.take(buffer.offset, size, buffer)
    return "" if other is None else f"overlaps {text_of(other)}"


def _is_given(place: Place) -> bool:
    return isinstance(place, places.Result) and place.given


_STEPS: dict[Any, Any] = {
    statements.Compute: _Run._compute,
    statements.Put: _Run._put,
    statements.Call: _Run._call,
    statements.See: _Run._see,
    statements.Make: _Run._make,
    statements.Fill: _Run._fill,
    statements.Copy: _Run._copy,
    statements.Combine: _Run._combine,
    statements.Release: _Run._release,
}


# Workspace of one item: its index, location and size.
Room: TypeAlias = tuple[int, Location, int]


def verify_memory(
    plan: Nests,
    written: Sequence[Sequence[int]],
    offsets: Mapping[int, Location],
    rooms: Sequence[Room],
) -> None:
    """Raise `InternalError` if an item reads what is not there, or two live values share memory.

    `written` has the values that each item writes; `offsets` has their locations in the workspace.
    """
    begins: dict[int, list[tuple[Location, int, str]]] = {}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, item in enumerate(plan.items):
        # An accumulating product reads its own value.
        made = () if isinstance(item, statements.Product) else written[at]
        for v in (read := list(values_read(item))):
            if v in offsets and v not in first and v not in made:
                raise InternalError(f"native code: item {at} reads value {v} before it is there")
        for v in (*read, *written[at]):
            if v in offsets:
                first.setdefault(v, at)
                last[v] = at
    stays = [(at, at, place, size, "room") for at, place, size in rooms]
    for v, at in first.items():
        type = plan.types[v]
        size = POINTER if is_open(type.shape) else type.nbytes
        stays.append((at, last[v], offsets[v], size, f"value {v}"))
    ends: dict[int, list[tuple[Location, str]]] = {}
    for begin, end, place, size, name in stays:
        begins.setdefault(begin, []).append((place, size, name))
        ends.setdefault(end, []).append((place, name))
    memory = _Memory()
    for at in range(len(plan.items)):
        for place, size, name in begins.get(at, ()):
            other = memory.take(place, size, name)
            if other is not None:
                raise InternalError(f"native code: {name} overwrites {other} at item {at}")
        for place, name in ends.get(at, ()):
            memory.give(place, name)
