"""The planned style: every result in a buffer made beforehand, or in one handed to the user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, final

from primgraph.codegen.call import Call, Options
from primgraph.codegen.entry import check_of, entries, results_of
from primgraph.codegen.fallback import caller_of
from primgraph.codegen.layout import viewed_layout
from primgraph.codegen.literals import dtype_text, scalar_text, shape_text
from primgraph.codegen.loops import Looping
from primgraph.codegen.module import Module, Parts, tuple_text
from primgraph.codegen.names import Names
from primgraph.codegen.notation import Spelling
from primgraph.codegen.plan import Plan, PlanStep
from primgraph.codegen.regions import Region
from primgraph.codegen.schedule import Schedule, Step
from primgraph.codegen.scratch import Ledger, Operation, needs_none, object_bytes, scratch
from primgraph.codegen.spelling import SPELLINGS, iota_shape
from primgraph.codegen.structure import expanded_shape
from primgraph.codegen.threads import share
from primgraph.codegen.workspace import Place, Storage, Workspace
from primgraph.ir.params import bits
from primgraph.ir.types import DType, TensorType, broadcast_shapes

_CONSTANTS = frozenset({"full", "constant", "iota"})


def planned(schedule: Schedule, regions: tuple[Region, ...], options: Options) -> Module:
    """The schedule as a module with two entries, `workspace()` and `run(w, arrays)`.

    A workspace holds buffers, and views of buffers and of constants. One that is in use by a
    run must not be used by another. `run` returns a list of arrays that nothing else refers to.
    Where some are given it is `run(w, arrays, results)`, and returns these at their places.
    """
    return Planner(schedule, regions, options).module()


def plan_of(schedule: Schedule, regions: tuple[Region, ...], options: Options) -> Plan:
    """What `planned` decides, written down while it does so again."""
    planner = Planner(schedule, regions, options, recording=True)
    planner.module()
    return planner.plan()


def _may_fail(step: Step) -> bool:
    """Whether the step can raise an error: one that looks indices up, or is a user's own."""
    spelling = SPELLINGS.get(step.op.name)
    return spelling is None or spelling.fallible


@final
class Planner:
    """Writes the steps, one after the other; `Looping` writes those in loops."""

    def __init__(
        self,
        schedule: Schedule,
        regions: tuple[Region, ...],
        options: Options,
        recording: bool = False,
    ) -> None:
        self.schedule = schedule
        self.recording = recording
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
        failing = [i for i, s in enumerate(schedule.steps) if donated and _may_fail(s)]
        self.settled = failing[-1] + 1 if failing else 0
        kept = [(k, v) for k, v in enumerate(schedule.outputs) if k not in donated]
        self.results = {v: f"r{k}" for k, v in reversed(kept)}
        # The names of results that the caller gives arrays for.
        self.given = {f"r{k}": None for k in options.given}
        self.looping = Looping(self, regions)
        self.record: list[PlanStep] = []
        self.ledger = Ledger()
        self._reads: tuple[Storage, ...] = ()

    def module(self) -> Module:
        schedule = self.schedule
        arguments = [self.names.counted("x") for _ in range(schedule.inputs)]
        for i, name in enumerate(arguments):
            self.places[i] = Place(name, schedule.types[i].shape)
            self.parts.argument(name)
        for name in self.given:
            self.parts.argument(name)
        for steps in self.looping.chunks():
            self.parts.begin()
            self.taken.append({})
            for i in steps:
                self._step(i, schedule.steps[i])
        results = results_of(self)
        functions = entries(self, arguments, results)
        setup = self.workspace.setup(self.options.poisoned)
        fed = schedule.types[: schedule.inputs - self.options.kept]
        fit = check_of(fed)
        if self.looping.functions:
            self.constants.append("spares = []")
            self.table["share"] = share
        if fit is not None:
            functions.append(fit)
            dtypes = dict.fromkeys(dtype_text(t.dtype) for t in fed)
            self.constants += [f"dtype_of_{d[3:]} = np.dtype({d})" for d in dtypes]
        return Module(
            [*self.functions, *self.constants],
            [],
            [*setup, *self.looping.functions, *functions],
            "run",
            self.table,
            self.users,
        )

    def plan(self) -> Plan:
        """What was decided; to be asked for after `module`."""
        arena, space = self.workspace.whole.arena, self.workspace.space.arena
        storages, regions = tuple(self.workspace.storages), self.looping.regions
        kept, call = self.workspace.kept, self.ledger.most
        steps = tuple(self.record)
        return Plan(arena.size, arena.least, space.size, storages, steps, regions, kept, call)

    # What stays: constants, functions, buffers, views.

    def np(self, name: str) -> str:
        """The local name of something of NumPy's."""
        local = self.bound.get(name)
        if local is None:
            local = self.bound[name] = name.replace(".", "_")
            text = "slice(None)" if name == "everything" else f"np.{name}"
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
            self._local_view(local, name, template)
            self.ledger.hold(object_bytes(1))
        return local

    def _local_view(self, local: str, name: str, template: str) -> None:
        """A view that each run makes; within a loop each block, if it is of what a block makes."""
        text, loop = f"{local} = {template.format(name)}", self.looping.loop
        if loop is not None and name in loop.inner:
            self.line(text, self.looping.step)
            loop.inner.add(local)
            return
        self.parts.use(name)
        self.parts.current.line(text, self.looping.step)
        self.parts.bind(local)

    def use(self, name: str) -> str:
        """Note that the current function reads `name`."""
        if self.looping.has(name):
            return name
        self.looping.note(name)
        if name in self.workspace.slots:
            self.taken[-1][name] = None
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
        self._reads = self._storages_of(step) if self.recording else ()
        name = step.form.op.name
        spelling = SPELLINGS.get(name)
        if self.looping.loop is not None:
            self.looping.write(i, step)
        elif spelling is None:
            self._call_user(i, step)
        elif name in _CONSTANTS:
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
            full = place.full if same else ""
            return replace(place, plain=place.plain and same, full=full)
        if target is not None and step.op.name == "reshape":
            # The last block is shorter, so its number of rows is that of the operand.
            extents = list(map(str, result.shape))
            extents[target] = f"{{0}}.shape[{axis}]"
            template = f"{{0}}.reshape({', '.join(extents)})"
        shape = expanded_shape(step) if step.op.name == "broadcast" else result.shape
        name = self.full(place, step.operands[0], axis)
        layout = viewed_layout(step, k, place.layout.expanded(step.operands[0].shape))
        return Place(self.view(name, template), shape, plain=False, strides=layout.strides)

    def _compute(self, i: int, step: Step, spelling: Spelling) -> None:
        form, value = step.form, step.outputs[0]
        type, operands = form.results[0], form.operands
        places = [self.places[v] for v in step.inputs]
        args = [
            self.use(p.name) if k in spelling.broadcasts else self.full(p, operands[k])
            for k, p in enumerate(places)
        ]
        array = self._donated_array(i, step, spelling, places) if self.donated else ""
        taken = None
        if array:
            out = self.use(array)
        elif value in self.results:
            out = self.results[value]
            if out not in self.given and spelling.ufunc and self._shapes_itself(places, step):
                self.places[value] = Place(out, type.shape)
                self.line(f"{out} = {self.np(spelling.ufunc)}({', '.join(args)})", i)
                self.parts.bind(out)
                self.ledger.hold(type.nbytes)
                self.weigh(step, spelling, places)
                self.note(i, step, None)
                return
            self.fresh(out, type, i)
        else:
            taken = self.dying(i, step, spelling, places)
            out = self.buffer(value, type, i) if taken is None else self.take_over(step, taken)
        self.places[value] = Place(out, type.shape)
        self.note(i, step, self.storages.get(value))
        self.weigh(step, spelling, places)
        plain = bool(places) and places[0].plain and places[0].shape == operands[0].shape
        for line in spelling.write(Call(self, step, args, out, taken, plain)):
            self.line(line, i)

    def weigh(self, step: Step, spelling: Spelling, places: list[Place]) -> None:
        """Note what NumPy allocates for a step whose operands are at these places."""
        result = self.places[step.outputs[0]]
        plain = result.strides is None and all(
            p.strides is None and p.shape in ((), result.shape) for p in places
        )
        if not needs_none(step, plain):
            layouts = [
                p.layout if k in spelling.broadcasts else p.layout.expanded(t.shape)
                for k, (p, t) in enumerate(zip(places, step.operands, strict=True))
            ]
            fixed = frozenset(k for k, p in enumerate(places) if p.name[0] in "ck")
            self.ledger.need(scratch(Operation(step, layouts, result.layout, fixed)))

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
        form, schedule = step.form, self.schedule
        type = form.results[0]
        if type.size == 1 and spelling.ufunc:
            return None
        roots = [schedule.root[v] for v in step.inputs]
        for k in spelling.in_place[: len(places)]:
            place, root = places[k], roots[k]
            if schedule.last[root] != i or not place.plain or form.operands[k] is not type:
                continue
            storage = self.storages.get(root)
            if storage is None or storage.name != place.name or not self.looping.owns(storage):
                continue
            if roots.count(root) == 1 or self._alike(k, spelling, places, roots):
                return k
        return None

    def _alike(self, k: int, spelling: Spelling, places: list[Place], roots: list[int]) -> bool:
        """Whether the other operands that share the storage of operand `k` are the same array."""
        return bool(spelling.ufunc) and all(
            root != roots[k] or (place.plain and place.name == places[k].name)
            for root, place in zip(roots, places, strict=True)
        )

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
        # A function of the user's makes its results, and they are copied.
        self.ledger.need(2 * sum(t.nbytes for t in step.results))
        for k, (value, type) in enumerate(zip(step.outputs, step.results, strict=True)):
            found = f"t[{k}]" if step.op.multiple else text
            out = self.results.get(value, "")
            if out and out not in self.given:
                self.parts.bind(out)
                self.ledger.hold(type.nbytes)
                self.line(f"{out} = {found}", i)
            else:
                out = out or self.buffer(value, type, i)
                self.line(f"{self.use(out)}[...] = {found}", i)
            self.places[value] = Place(out, type.shape)
            self.note(i, step, self.storages.get(value))

    def release(self, i: int, values: Iterable[int]) -> None:
        """Give back the buffers of values that this step reads last, or that nothing reads."""
        roots, last, storages = self.schedule.root, self.schedule.last, self.storages
        for value in values:
            root = roots[value]
            if last[root] > i or root not in storages:
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
        if self.recording:
            self.record.append(PlanStep(i, step, self._reads, writes))

    def note_total(self, i: int, step: Step, part: Storage, total: Storage | None) -> None:
        """Write down that a block's share goes into a total, or into a whole array."""
        if self.recording and total is not None:
            self.record.append(PlanStep(i, step, (part,), total, adds=True))

    def _storages_of(self, step: Step) -> tuple[Storage, ...]:
        roots = dict.fromkeys(self.schedule.root[v] for v in step.inputs)
        return tuple(self.storages[r] for r in roots if r in self.storages)

    # Results, and what is around the steps.

    def line(self, text: str, i: int) -> None:
        loop = self.looping.loop
        (self.parts.current if loop is None else loop.body).line(text, i)

    def fresh(self, out: str, type: TensorType, i: int) -> None:
        """Make result `out`, unless the caller gives it."""
        if out in self.given:
            self.use(out)
            return
        dtype = self.np(dtype_text(type.dtype)[3:])
        self.line(f"{out} = {self.np('empty')}({shape_text(type.shape)}, {dtype})", i)
        self.parts.bind(out)
        self.ledger.hold(type.nbytes)
