"""The planned style: every result in a buffer made beforehand, or in one handed to the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from primgraph.codegen.fallback import caller_of
from primgraph.codegen.literals import dtype_text, scalar_text, shape_text
from primgraph.codegen.module import MANY, Function, Module, Parts, tuple_text
from primgraph.codegen.names import Names
from primgraph.codegen.notation import Spelling
from primgraph.codegen.schedule import Schedule, Step
from primgraph.codegen.spelling import SPELLINGS, iota_shape
from primgraph.codegen.structure import expanded_shape
from primgraph.ir.params import bits
from primgraph.ir.types import DType, Shape, TensorType, broadcast_shapes

# Lines in one function that makes a workspace.
_SETUP = 1000


@dataclass(slots=True)
class Place:
    """Where a value is: the name of an array, which NumPy's broadcasting may have to repeat.

    `plain` tells an array that is not a view: a feed, a constant, a buffer or a result.
    `scalar` is the number that all elements equal, for a constant. `full` is the name in full
    shape, once that has been asked for.
    """

    name: str
    shape: Shape
    plain: bool = True
    scalar: Any = None
    full: str = ""


@final
@dataclass(slots=True)
class _Call:
    """One step to write, as spellings see it."""

    planner: _Planner
    step: Step
    args: list[str]
    out: str
    taken: int | None = None

    def np(self, name: str) -> str:
        return self.planner.np(name)

    def helper(self, name: str) -> str:
        return name

    def scalar(self, value: Any, dtype: DType) -> str:
        return self.planner.scalar(value, dtype)

    def part(self, template: str) -> str:
        return self.planner.view(self.out, template)

    def operand_part(self, position: int, template: str) -> str:
        return self.planner.view(self.args[position], template)


@dataclass(slots=True)
class _Workspace:
    """What is made once and kept: names in the order of their slots, and how each is made."""

    slots: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        self.slots[name] = len(self.slots)
        self.lines.append(f"w[{self.slots[name]}] = {text}")


def planned(schedule: Schedule, donated: Mapping[int, int] | None = None) -> Module:
    """The schedule as a module with two entries: `workspace()`, and `run(w, arrays)`.

    `donated` maps outputs to inputs in whose arrays they are to be left, by position.

    A workspace holds buffers, and views of buffers and of constants. One that is in use by a
    run must not be used by another. `run` returns a list of arrays that nothing else refers to.
    """
    return _Planner(schedule, donated or {}).module()


def _may_fail(step: Step) -> bool:
    """Whether the step can raise an error: one that looks indices up, or is a user's own."""
    return step.op.name in ("gather", "scatter_add") or step.op.name not in SPELLINGS


@final
class _Planner:
    def __init__(self, schedule: Schedule, donated: Mapping[int, int]) -> None:
        self.schedule = schedule
        self.donated = donated
        # Of a value, the input whose array it is to be left in.
        self.left_in = {schedule.outputs[k]: j for k, j in reversed(list(donated.items()))}
        self.functions = ["import numpy as np"]
        self.constants: list[str] = []
        self.table: dict[str, Any] = {}
        self.users: list[str] = []
        self.bound: dict[str, str] = {}
        self.scalars: dict[Any, str] = {}
        self.names = Names()
        self.parts = Parts("w, carried")
        self.workspace = _Workspace()
        # Of each part, the things of the workspace that it takes.
        self.taken: list[dict[str, None]] = []
        self.places: dict[int, Place] = {}
        self.views: dict[tuple[str, str], str] = {}
        self.free: dict[tuple[Shape, DType], list[str]] = {}
        # Of each root in a buffer, that buffer's name.
        self.buffers: dict[int, str] = {}
        # The first step from which on none can fail: donated arrays are not touched before it.
        failing = [i for i, s in enumerate(schedule.steps) if _may_fail(s)]
        self.settled = failing[-1] + 1 if failing else 0
        kept = [(k, v) for k, v in enumerate(schedule.outputs) if k not in donated]
        self.results = {v: f"r{k}" for k, v in reversed(kept)}

    def module(self) -> Module:
        schedule = self.schedule
        arguments = [self.names.counted("x") for _ in range(schedule.inputs)]
        for i, name in enumerate(arguments):
            self.places[i] = Place(name, schedule.types[i].shape)
            self.parts.argument(name)
        for steps in schedule.chunks():
            self.parts.begin()
            self.taken.append({})
            for i in steps:
                self._step(i, schedule.steps[i])
        self.held = self._copies_held()
        named = {k: self._result(k, v) for k, v in self._in_turn()}
        results = [named[k] for k in range(len(schedule.outputs))]
        single = len(self.parts.parts) == 1 and max(len(arguments), len(results)) <= MANY
        functions = (
            [self._single(arguments, results)] if single else self._several(arguments, results)
        )
        setup = self._setup()
        return Module(
            [*self.functions, *self.constants],
            [],
            [*setup, *functions],
            "run",
            self.table,
            self.users,
        )

    # What stays: constants, functions, buffers, views.

    def np(self, name: str) -> str:
        """The local name of something of NumPy's."""
        local = name.replace(".", "_")
        if local not in self.bound:
            text = "slice(None)" if name == "everything" else f"np.{name}"
            self.bound[local] = text
            self.functions.append(f"{local} = {text}")
        return local

    def scalar(self, value: Any, dtype: DType) -> str:
        """The name of a typed read-only array without axes."""
        key = (bits(value), dtype)
        if key not in self.scalars:
            name = self.scalars[key] = self.names.counted("c")
            self.constants.append(
                f"{name} = np.array({scalar_text(value, dtype)}, {dtype_text(dtype)})"
            )
            self.constants.append(f"{name}.setflags(write=False)")
        return self.scalars[key]

    def view(self, name: str, template: str) -> str:
        """The name of a view of what is called `name`; of what stays it is made but once."""
        if template == "{}":
            return name
        key = (name, template)
        if key not in self.views:
            self.views[key] = self._view(name, template)
        return self._use(self.views[key])

    def _view(self, name: str, template: str) -> str:
        local = self.names.counted("v")
        if name in self.workspace.slots:
            self.workspace.add(local, template.format(f"w[{self.workspace.slots[name]}]"))
        elif name[0] in "ck":
            self.workspace.add(local, template.format(name))
        else:
            self.parts.current.line(f"{local} = {template.format(self._use(name))}")
            self.parts.bind(local)
        return local

    def _use(self, name: str) -> str:
        """Note that the current function reads `name`."""
        if name in self.workspace.slots:
            self.taken[-1].setdefault(name)
        else:
            self.parts.use(name)
        return name

    def _buffer(self, type: TensorType) -> str:
        """A buffer that no living value is in."""
        stock = self.free.get((type.shape, type.dtype))
        if stock:
            return stock.pop()
        name = self.names.counted("b")
        shape, dtype = shape_text(type.shape), dtype_text(type.dtype)
        self.workspace.add(name, f"np.empty({shape}, {dtype})")
        return name

    # Operands.

    def _small(self, place: Place) -> str:
        return self._use(place.name)

    def _full(self, place: Place, type: TensorType) -> str:
        """The name of a value in full shape: repeated by a view where it is smaller."""
        if place.shape == type.shape:
            return self._use(place.name)
        if not place.full:
            np_name = "np.broadcast_to" if self._stays(place.name) else self.np("broadcast_to")
            template = f"{np_name}({{}}, {shape_text(type.shape)})"
            place.full = self.view(place.name, template)
        return self._use(place.full)

    def _stays(self, name: str) -> bool:
        return name in self.workspace.slots or name[0] in "ck"

    # Steps.

    def _step(self, i: int, step: Step) -> None:
        name = step.op.name
        spelling = SPELLINGS.get(name)
        if spelling is None:
            self._call_user(i, step)
        elif name in ("full", "constant", "iota"):
            self._constant(step, spelling)
        elif spelling.view is not None and self.schedule.is_view(step.outputs[0]):
            for k, value in enumerate(step.outputs):
                if self.schedule.uses[value]:
                    self.places[value] = self._viewed(step, spelling, k)
        else:
            self._compute(i, step, spelling)
        self._release(i, step)

    def _constant(self, step: Step, spelling: Spelling) -> None:
        type, value = step.results[0], step.outputs[0]
        if step.op.name == "full":
            number = step.params["value"]
            name = self.scalar(number, type.dtype)
            self.places[value] = Place(name, (), scalar=number)
            return
        name = self.names.counted("k")
        if step.op.name == "iota":
            self.constants.append(f"{name} = {spelling.read([], step).code}")
            self.places[value] = Place(name, iota_shape(step))
            return
        self.table[name] = step.params["value"].data
        self.places[value] = Place(name, type.shape)

    def _viewed(self, step: Step, spelling: Spelling, k: int) -> Place:
        assert spelling.view is not None
        place, result = self.places[step.inputs[0]], step.results[k]
        template = spelling.view(step, k)
        if place.scalar is not None:
            return Place(place.name, (), scalar=place.scalar)
        if template == "{}":
            same = result.shape == step.operands[0].shape
            return Place(
                place.name, place.shape, place.plain and same, full=place.full if same else ""
            )
        shape = expanded_shape(step) if step.op.name == "broadcast" else result.shape
        return Place(self.view(self._full(place, step.operands[0]), template), shape, plain=False)

    def _compute(self, i: int, step: Step, spelling: Spelling) -> None:
        places = [self.places[v] for v in step.inputs]
        args = [
            self._small(p) if k in spelling.broadcasts else self._full(p, t)
            for k, (p, t) in enumerate(zip(places, step.operands, strict=True))
        ]
        value, type = step.outputs[0], step.results[0]
        array = self._donated_array(i, step, spelling, places)
        if array:
            out, taken = array, None
            self.places[value] = Place(self._use(out), type.shape)
        elif value in self.results:
            out = self.results[value]
            self.places[value] = Place(out, type.shape)
            if spelling.ufunc and self._shapes_itself(places, step):
                self._line(f"{out} = {self.np(spelling.ufunc)}({', '.join(args)})", i)
                self.parts.bind(out)
                return
            self._fresh(out, type, i)
            taken = None
        else:
            taken = self._dying(i, step, spelling, places)
            out = self._taken_over(step, taken) if taken is not None else self._buffer(type)
            self.buffers[value] = out
            self.places[value] = Place(self._use(out), type.shape)
        for line in spelling.write(_Call(self, step, args, out, taken)):
            self._line(line, i)

    def _donated_array(self, i: int, step: Step, spelling: Spelling, places: list[Place]) -> str:
        """The array of an input that the result may be written to at once, or nothing.

        Nothing else may read that input after this step, nor a view of it in this step, and no
        later step may fail, so that a run that fails leaves its inputs as they were.
        """
        j = self.left_in.get(step.outputs[0])
        if j is None or not spelling.ufunc or self.schedule.last[j] > i or i < self.settled:
            return ""
        name = self.places[j].name
        roots = [self.schedule.root[v] for v in step.inputs]
        alone = all(r != j or p.plain for r, p in zip(roots, places, strict=True))
        return name if alone and not self.schedule.is_view(step.outputs[0]) else ""

    def _shapes_itself(self, places: list[Place], step: Step) -> bool:
        """Whether a ufunc gives the whole result, as an array in row-major order."""
        shape = step.results[0].shape
        plain = all(p.plain for p in places)
        return bool(shape) and plain and broadcast_shapes(*(p.shape for p in places)) == shape

    def _dying(self, i: int, step: Step, spelling: Spelling, places: list[Place]) -> int | None:
        """The operand whose buffer the result may take over: nothing else reads it any more."""
        last, type = self.schedule.last, step.eqn.outputs[0].type
        roots = [self.schedule.root[v] for v in step.inputs]
        for k in spelling.in_place:
            if k >= len(places) or last[roots[k]] != i or not places[k].plain:
                continue
            root, name = roots[k], places[k].name
            if self.buffers.get(root) != name or step.eqn.inputs[k].type != type:
                continue
            if all(
                r != root or (p.plain and p.name == name and (k == j or bool(spelling.ufunc)))
                for j, (r, p) in enumerate(zip(roots, places, strict=True))
            ):
                return k
        return None

    def _taken_over(self, step: Step, position: int) -> str:
        return self.buffers.pop(self.schedule.root[step.inputs[position]])

    def _call_user(self, i: int, step: Step) -> None:
        function = self.names.counted("user_")
        self.table[function] = caller_of(step)
        self.users.append(step.op.name)
        args = [
            self._full(self.places[v], t) for v, t in zip(step.inputs, step.operands, strict=True)
        ]
        text = f"{function}({', '.join(args)})"
        if step.op.multiple:
            self._line(f"t = {text}", i)
        for k, (value, type) in enumerate(zip(step.outputs, step.results, strict=True)):
            found = f"t[{k}]" if step.op.multiple else text
            if value in self.results:
                out = self.results[value]
                self.parts.bind(out)
                self._line(f"{out} = {found}", i)
            else:
                out = self.buffers[value] = self._buffer(type)
                self._line(f"{self._use(out)}[...] = {found}", i)
            self.places[value] = Place(out, type.shape)

    def _release(self, i: int, step: Step) -> None:
        """Give back the buffers of values that this step reads last, or that nothing reads."""
        for value in dict.fromkeys((*step.inputs, *step.outputs)):
            root = self.schedule.root[value]
            if self.schedule.last[root] <= i and root in self.buffers:
                type = self.schedule.types[root]
                self.free.setdefault((type.shape, type.dtype), []).append(self.buffers.pop(root))

    # Results, and what is around the steps.

    def _line(self, text: str, i: int) -> None:
        self.parts.current.line(text, i)

    def _fresh(self, out: str, type: TensorType, i: int) -> None:
        dtype = self.np(dtype_text(type.dtype)[3:])
        self._line(f"{out} = {self.np('empty')}({shape_text(type.shape)}, {dtype})", i)
        self.parts.bind(out)

    def _in_turn(self) -> list[tuple[int, int]]:
        """The outputs, those last that write to inputs which the others may still be read from."""
        return sorted(enumerate(self.schedule.outputs), key=lambda pair: pair[0] in self.donated)

    def _copies_held(self) -> dict[int, Place]:
        """Copies of what is read from one donated input to be left in another, by value.

        Both are written to, and none of the two orders would be right for all such outputs.
        """
        last, held = len(self.schedule.steps) - 1, {}
        for k, j in self.donated.items():
            value = self.schedule.outputs[k]
            root, place = self.schedule.root[value], self.places[value]
            if root != j and root in self.donated.values():
                name = self.names.counted("held")
                self._line(f"{name} = {self._small(place)}.copy()", last)
                self.parts.bind(name)
                held[value] = Place(name, place.shape)
        return held

    def _result(self, k: int, value: int) -> str:
        """The name of result `k`: an array of its own, copied unless it was computed there."""
        place, last = self.places[value], len(self.schedule.steps) - 1
        if k in self.donated:
            array, place = self.places[self.donated[k]].name, self.held.get(value, place)
            if place.name != array:
                self._line(f"{self._use(array)}[...] = {self._small(place)}", last)
            return self._use(array)
        name = f"r{k}"
        if place.name == name and place.plain:
            return self._use(name)
        if place.shape == self.schedule.types[value].shape:
            self._line(f"{name} = {self._small(place)}.copy()", last)
            self.parts.bind(name)
            return name
        self._fresh(name, self.schedule.types[value], last)
        self._line(f"{name}[...] = {self._small(place)}", last)
        return name

    def _unpack(self, number: int, groups: list[list[str]]) -> list[str]:
        """Lines that give local names to the things that function `number` takes."""
        names = list(self.taken[number])
        lines = []
        for start in range(0, len(names), MANY):
            group = names[start : start + MANY]
            lines.append(f"{tuple_text(group)[1:-1]} = w[{len(groups)}]")
            groups.append(group)
        return lines

    def _single(self, arguments: list[str], results: list[str]) -> Function:
        function = self.parts.current
        function.name, function.parameters = "run", "w, arrays"
        self.groups: list[list[str]] = []
        lines = [f"{tuple_text(arguments)[1:-1]} = arrays"] if arguments else []
        function.first([*lines, *self._unpack(0, self.groups)])
        function.line(f"return [{', '.join(results)}]")
        return function

    def _several(self, arguments: list[str], results: list[str]) -> list[Function]:
        self.groups = []
        first = self.parts.finish(arguments, results)
        for number, part in enumerate(self.parts.parts):
            part.first(self._unpack(number, self.groups))
        entry = Function("run", "w, arrays")
        entry.line(f"carried = [*arrays, *[None] * {first + len(results) - len(arguments)}]")
        for part in self.parts.parts:
            entry.line(f"{part.name}(w, carried)")
        entry.line(f"return carried[{first}:]")
        return [*self.parts.parts, entry]

    def _setup(self) -> list[Function]:
        """Functions that make a workspace: all its things, and from them the groups."""
        slots = self.workspace.slots
        lines = list(self.workspace.lines)
        for group in self.groups:
            things = tuple_text([f"w[{slots[name]}]" for name in group])
            lines.append(f"groups.append({things})")
        functions = []
        entry = Function("workspace", "")
        entry.line(f"w = [None] * {len(slots)}")
        entry.line("groups = []")
        for start in range(0, len(lines), _SETUP):
            part = Function(f"setup_{start // _SETUP}", "w, groups")
            for line in lines[start : start + _SETUP]:
                part.line(line)
            entry.line(f"{part.name}(w, groups)")
            functions.append(part)
        entry.line("return groups")
        return [*functions, entry]
