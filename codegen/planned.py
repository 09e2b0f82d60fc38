"""The planned style: every result in a buffer made beforehand, or in one handed to the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

from primgraph.codegen.call import Call, Options
from primgraph.codegen.entry import check_of, entries, results_of
from primgraph.codegen.fallback import caller_of
from primgraph.codegen.literals import dtype_text, scalar_text, shape_text
from primgraph.codegen.loops import Looping
from primgraph.codegen.module import Module, Parts, tuple_text
from primgraph.codegen.names import Names
from primgraph.codegen.notation import Spelling
from primgraph.codegen.plan import Plan, PlanStep
from primgraph.codegen.regions import Region
from primgraph.codegen.schedule import Schedule, Step
from primgraph.codegen.spelling import SPELLINGS, iota_shape
from primgraph.codegen.structure import expanded_shape
from primgraph.codegen.workspace import Place, Storage, Workspace
from primgraph.ir.params import bits
from primgraph.ir.types import DType, TensorType, broadcast_shapes


def planned(
    schedule: Schedule, regions: tuple[Region, ...], options: Options
) -> tuple[Module, Plan]:
    """The schedule as a module with two entries, `workspace()` and `run(w, arrays)`; and its plan.

    A workspace holds buffers, and views of buffers and of constants. One that is in use by a
    run must not be used by another. `run` returns a list of arrays that nothing else refers to;
    with `into` it is `run(w, arrays, results)`, and returns what it is given.
    """
    planner = Planner(schedule, regions, options)
    return planner.module(), planner.plan()


def _may_fail(step: Step) -> bool:
    """Whether the step can raise an error: one that looks indices up, or is a user's own."""
    spelling = SPELLINGS.get(step.op.name)
    return spelling is None or spelling.fallible


@final
class Planner:
    """Writes the steps, one after the other; `Looping` writes those in loops."""

    def __init__(self, schedule: Schedule, regions: tuple[Region, ...], options: Options) -> None:
        self.schedule = schedule
        self.options = options
        donated = self.donated = dict(options.donated)
        # Of a value, the input whose array it is to be left in.
        self.left_in = {schedule.outputs[k]: j for k, j in reversed(list(donated.items()))}
        self.functions = ["import numpy as np"]
        self.constants: list[str] = []
        self.table: dict[str, Any] = {}
        self.users: list[str] = []
        self.bound: dict[str, str] = {}
        self.scalars: dict[Any, str] = {}
        self.vectors: dict[tuple[int, DType], str] = {}
        self.names = Names()
        self.parts = Parts("w, carried")
        self.workspace = Workspace()
        # Of each part, the things of the workspace that it takes.
        self.taken: list[dict[str, None]] = []
        self.places: dict[int, Place] = {}
        self.views: dict[tuple[str, str], str] = {}
        # Of each root in a buffer, its storage.
        self.storages: dict[int, Storage] = {}
        # The first step from which on none can fail: donated arrays are not touched before it.
        failing = [i for i, s in enumerate(schedule.steps) if _may_fail(s)]
        self.settled = failing[-1] + 1 if failing else 0
        kept = [(k, v) for k, v in enumerate(schedule.outputs) if k not in donated]
        self.results = {v: f"r{k}" for k, v in reversed(kept)}
        self.looping = Looping(self, regions)
        self.record: list[PlanStep] = []
        self._reads: tuple[Storage, ...] = ()

    def module(self) -> Module:
        schedule = self.schedule
        arguments = [self.names.counted("x") for _ in range(schedule.inputs)]
        for i, name in enumerate(arguments):
            self.places[i] = Place(name, schedule.types[i].shape)
            self.parts.argument(name)
        given = [f"r{k}" for k, _ in enumerate(schedule.outputs)] if self.options.into else []
        for name in given:
            self.parts.argument(name)
        for steps in self.looping.chunks():
            self.parts.begin()
            self.taken.append({})
            for i in steps:
                self._step(i, schedule.steps[i])
        results = results_of(self)
        functions = entries(self, arguments, given, results)
        setup = self.workspace.setup(self.options.poisoned)
        fit = check_of(schedule.types[: schedule.inputs])
        if fit is not None:
            functions.append(fit)
            dtypes = dict.fromkeys(dtype_text(t.dtype) for t in schedule.types[: schedule.inputs])
            self.constants += [f"dtype_of_{d[3:]} = np.dtype({d})" for d in dtypes]
        return Module(
            [*self.functions, *self.constants],
            [],
            [*setup, *functions],
            "run",
            self.table,
            self.users,
        )

    def plan(self) -> Plan:
        """What was decided; to be asked for after `module`."""
        arena = self.workspace.arena
        storages, regions = tuple(self.workspace.storages), self.looping.regions
        return Plan(arena.size, arena.least, storages, tuple(self.record), regions)

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

    def ones(self, count: int, dtype: DType, looped: bool) -> str:
        """The name of a vector of ones; with `looped` it has one for each row of the block."""
        if looped:
            return self.looping.ones(dtype)
        key = (count, dtype)
        if key not in self.vectors:
            name = self.vectors[key] = self.names.counted("c")
            self.constants.append(f"{name} = np.ones({count}, {dtype_text(dtype)})")
            self.constants.append(f"{name}.setflags(write=False)")
        return self.vectors[key]

    def view(self, name: str, template: str) -> str:
        """The name of a view of what is called `name`; of what stays it is made but once."""
        if template == "{}":
            return name
        key = (name, template)
        if key not in self.views:
            self.views[key] = self._view(name, template)
        return self.use(self.views[key])

    def _view(self, name: str, template: str) -> str:
        local = self.names.counted("v")
        if self.looping.has(name):
            self.looping.add_view(local, name, template)
        elif name in self.workspace.slots:
            self.workspace.view(local, name, template)
        elif name[0] in "ck":
            self.workspace.add(local, template.format(name))
        else:
            self.line(f"{local} = {template.format(self.use(name))}", self.looping.step)
            self.parts.bind(local)
        return local

    def use(self, name: str) -> str:
        """Note that the current function reads `name`."""
        if self.looping.has(name):
            return name
        if name in self.workspace.slots:
            self.taken[-1].setdefault(name)
        else:
            self.parts.use(name)
        return name

    def buffer(self, value: int, type: TensorType, i: int) -> str:
        """The name of storage for `value` that no living value is in."""
        fresh = self.names.counted("b")
        storage = self.workspace.buffer(type, i, fresh)
        self.storages[value] = storage
        return self.use(storage.name)

    # Operands.

    def full(self, place: Place, type: TensorType, axis: int | None = None) -> str:
        """The name of a value in full shape: repeated by a view where it is smaller.

        In a block, whose last one is shorter, the extent of `axis` is that of the array itself.
        """
        if place.shape == type.shape:
            return self.use(place.name)
        if not place.full:
            stays = place.name in self.workspace.slots or place.name[0] in "ck"
            stays = stays or self.looping.has(place.name)
            np_name = "np.broadcast_to" if stays else self.np("broadcast_to")
            shape = shape_text(type.shape)
            if axis is not None:
                extents = list(map(str, type.shape))
                extents[axis] = f"{{0}}.shape[{axis - (type.ndim - len(place.shape))}]"
                shape = tuple_text(extents)
            place.full = self.view(place.name, f"{np_name}({{0}}, {shape})")
        return self.use(place.full)

    # Steps.

    def _step(self, i: int, step: Step) -> None:
        self.looping.before(i)
        self._reads = self._storages_of(step)
        spelling = SPELLINGS.get(step.op.name)
        if self.looping.loop is not None:
            self.looping.write(i, step)
        elif spelling is None:
            self._call_user(i, step)
        elif step.op.name in ("full", "constant", "iota"):
            self._constant(step, spelling)
        elif spelling.view is not None and self.schedule.is_view(step.outputs[0]):
            self.set_views(step, spelling)
        else:
            self._compute(i, step, spelling)
        self.release(i, (*step.inputs, *step.outputs))
        self.looping.after(i)

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

    def set_views(self, step: Step, spelling: Spelling) -> None:
        for k, value in enumerate(step.outputs):
            if self.schedule.uses[value]:
                place = self.places[step.inputs[0]]
                self.places[value] = self.viewed(step, spelling, k, place, None, None)

    def viewed(
        self,
        step: Step,
        spelling: Spelling,
        k: int,
        place: Place,
        axis: int | None,
        target: int | None,
    ) -> Place:
        """Result `k` of a view of `place`; in a block, whose rows are along `axis` and `target`."""
        assert spelling.view is not None
        result = step.results[k]
        template = spelling.view(step, k)
        if place.scalar is not None:
            return Place(place.name, (), scalar=place.scalar)
        if template == "{}":
            same = result.shape == step.operands[0].shape
            return Place(
                place.name, place.shape, place.plain and same, full=place.full if same else ""
            )
        if target is not None and step.op.name == "reshape":
            # The last block is shorter, so its number of rows is left open.
            extents = ["-1" if a == target else str(n) for a, n in enumerate(result.shape)]
            template = f"{{}}.reshape({', '.join(extents)})"
        shape = expanded_shape(step) if step.op.name == "broadcast" else result.shape
        name = self.full(place, step.operands[0], axis)
        return Place(self.view(name, template), shape, plain=False)

    def _compute(self, i: int, step: Step, spelling: Spelling) -> None:
        places = [self.places[v] for v in step.inputs]
        args = [
            self.use(p.name) if k in spelling.broadcasts else self.full(p, t)
            for k, (p, t) in enumerate(zip(places, step.operands, strict=True))
        ]
        value, type = step.outputs[0], step.results[0]
        array = self._donated_array(i, step, spelling, places)
        taken = None
        if array:
            out = self.use(array)
        elif value in self.results:
            out = self.results[value]
            if not self.options.into and spelling.ufunc and self._shapes_itself(places, step):
                self.places[value] = Place(out, type.shape)
                self.line(f"{out} = {self.np(spelling.ufunc)}({', '.join(args)})", i)
                self.parts.bind(out)
                self.note(i, step, None)
                return
            self.fresh(out, type, i)
        else:
            taken = self.dying(i, step, spelling, places)
            out = self.buffer(value, type, i) if taken is None else self.take_over(step, taken)
        self.places[value] = Place(out, type.shape)
        self.note(i, step, self.storages.get(value))
        plain = bool(places) and places[0].plain and places[0].shape == step.operands[0].shape
        for line in spelling.write(Call(self, step, args, out, taken, plain)):
            self.line(line, i)

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

    def dying(self, i: int, step: Step, spelling: Spelling, places: list[Place]) -> int | None:
        """The operand whose buffer the result may take over: nothing else reads it any more.

        A single element is not computed in place, because NumPy takes twice as long for that.
        """
        last, type = self.schedule.last, step.eqn.outputs[0].type
        if type.size == 1 and SPELLINGS[step.op.name].ufunc:
            return None
        roots = [self.schedule.root[v] for v in step.inputs]
        for k in spelling.in_place:
            if k >= len(places) or last[roots[k]] != i or not places[k].plain:
                continue
            root, name = roots[k], places[k].name
            storage = self.storages.get(root)
            if storage is None or storage.name != name or step.eqn.inputs[k].type != type:
                continue
            if not self.looping.owns(storage):
                continue
            if all(
                r != root or (p.plain and p.name == name and (k == j or bool(spelling.ufunc)))
                for j, (r, p) in enumerate(zip(roots, places, strict=True))
            ):
                return k
        return None

    def take_over(self, step: Step, position: int) -> str:
        """Let the result have the storage of an operand."""
        storage = self.storages.pop(self.schedule.root[step.inputs[position]])
        self.storages[step.outputs[0]] = storage
        return self.use(storage.name)

    def _call_user(self, i: int, step: Step) -> None:
        function = self.names.counted("user_")
        self.table[function] = caller_of(step)
        self.users.append(step.op.name)
        args = [
            self.full(self.places[v], t) for v, t in zip(step.inputs, step.operands, strict=True)
        ]
        text = f"{function}({', '.join(args)})"
        if step.op.multiple:
            self.line(f"t = {text}", i)
        for k, (value, type) in enumerate(zip(step.outputs, step.results, strict=True)):
            found = f"t[{k}]" if step.op.multiple else text
            if value in self.results and not self.options.into:
                out = self.results[value]
                self.parts.bind(out)
                self.line(f"{out} = {found}", i)
            else:
                out = self.results.get(value) or self.buffer(value, type, i)
                self.line(f"{self.use(out)}[...] = {found}", i)
            self.places[value] = Place(out, type.shape)
            self.note(i, step, self.storages.get(value))

    def release(self, i: int, values: Iterable[int]) -> None:
        """Give back the buffers of values that this step reads last, or that nothing reads."""
        for value in dict.fromkeys(values):
            root = self.schedule.root[value]
            if self.schedule.last[root] > i or root not in self.storages:
                continue
            if self.looping.owns(self.storages[root]):
                self.free(self.storages.pop(root), i)
            else:
                self.looping.touch(root)

    def free(self, storage: Storage, i: int) -> None:
        if self.options.poisoned:
            self.line(f"poison({self.use(storage.name)})", i)
        self.workspace.release(storage, i)

    def call(self, step: Step, args: list[str], out: str, taken: int | None, plain: bool) -> Call:
        return Call(self, step, args, out, taken, plain)

    def note(self, i: int, step: Step, writes: Storage | None) -> None:
        """Write down for the plan what a step reads and writes."""
        self.record.append(PlanStep(i, step, self._reads, writes))

    def note_total(self, i: int, step: Step, part: Storage, total: Storage | None) -> None:
        """Write down that a block's share goes into a total, or into a whole array."""
        if total is not None:
            self.record.append(PlanStep(i, step, (part,), total, adds=True))

    def _storages_of(self, step: Step) -> tuple[Storage, ...]:
        roots = dict.fromkeys(self.schedule.root[v] for v in step.inputs)
        return tuple(self.storages[r] for r in roots if r in self.storages)

    # Results, and what is around the steps.

    def line(self, text: str, i: int) -> None:
        self.parts.current.line(self.looping.indent + text, i)

    def fresh(self, out: str, type: TensorType, i: int) -> None:
        """Make result `out`, unless the caller gives it."""
        if self.options.into:
            self.use(out)
            return
        dtype = self.np(dtype_text(type.dtype)[3:])
        self.line(f"{out} = {self.np('empty')}({shape_text(type.shape)}, {dtype})", i)
        self.parts.bind(out)
