"""The loops of the planned style: a region written as a loop over blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.codegen.layout import row_major
from primgraph.codegen.literals import scalar_text
from primgraph.codegen.module import MANY, Function, tuple_text
from primgraph.codegen.notation import Spelling
from primgraph.codegen.plan import PlanStep
from primgraph.codegen.regions import Region, narrowed
from primgraph.codegen.roles import Role
from primgraph.codegen.schedule import CHUNK, Step
from primgraph.codegen.scratch import object_bytes
from primgraph.codegen.spelling import SPELLINGS
from primgraph.codegen.workspace import Loop, Place, Share, Storage, local_shape
from primgraph.ir.types import DType

if TYPE_CHECKING:
    from primgraph.codegen.planned import Planner

# NumPy has deprecated a third positional operand of these two.
_OUT_BY_NAME = ("maximum", "minimum")
_INFINITY = {"maximum": "-np.inf", "minimum": "np.inf"}


@final
class Looping:
    """What a planner needs for loops: which one is being written, and how its steps are.

    Within a loop, values with rows are blocks of them in small buffers. Operands from outside
    are cut by the slice `s` of the block, and so are the arrays that the loop leaves behind.
    """

    def __init__(self, planner: Planner, regions: tuple[Region, ...]) -> None:
        self.planner = planner
        self.regions = regions
        self.loop: Loop | None = None
        # Loops that are functions, because threads may share their blocks.
        self.functions: list[Function] = []
        self.step = 0
        self._rows_along: int | None = None
        self._begins = {r.start: r for r in regions}

    def chunks(self) -> list[range]:
        """Ranges of steps, one a generated function; no loop is in two of them."""
        count = len(self.planner.schedule.steps)
        cuts, end = [0], CHUNK
        inside = {i for r in self.regions for i in range(r.start + 1, r.stop)}
        while end < count:
            while end in inside:
                end -= 1
            cuts.append(end)
            end += CHUNK
        return [range(a, b) for a, b in zip(cuts, [*cuts[1:], count], strict=True)]

    def has(self, name: str) -> bool:
        return self.loop is not None and name in self.loop.slots

    def is_inner(self, name: str) -> bool:
        """Whether `name` is bound anew for each block."""
        return self.loop is not None and (name in self.loop.slots or name in self.loop.inner)

    def note(self, name: str) -> None:
        """Note that the loop, if one is being written, reads `name` from outside."""
        p, loop = self.planner, self.loop
        if loop is None or self.is_inner(name):
            return
        if name in p.workspace.slots or p.parts.has(name):
            loop.outside[name] = None

    def owns(self, storage: Storage) -> bool:
        """Whether the step that is being written may overwrite or give back `storage`."""
        return self.loop is None or storage.block

    def touch(self, root: int) -> None:
        """Give back what is read from outside when the loop ends, not before."""
        assert self.loop is not None
        self.loop.touched[root] = None

    def rows_in(self, axes: Sequence[int]) -> bool:
        """Whether one of these axes of the first operand is that of the rows of a block."""
        return self.loop is not None and self._rows_along in axes

    def ones(self, dtype: DType) -> str:
        """A vector with a one for each row of a block."""
        p, loop = self.planner, self.loop
        assert loop is not None
        if dtype not in loop.ones:
            loop.ones[dtype] = p.names.counted("c")
            p.workspace.block_ones(loop, loop.ones[dtype], dtype)
        return loop.ones[dtype]

    def add_view(self, name: str, of: str, template: str) -> None:
        assert self.loop is not None
        self.planner.workspace.block_view(self.loop, name, of, template)

    def scratch(self, step: Step) -> str:
        """A buffer like the result of an elementwise step, given back when that is written."""
        p, type, fresh = self.planner, step.results[0], self.planner.names.counted("b")
        if self.loop is None:
            storage = p.workspace.buffer(type, self.step, fresh)
        else:
            assert self._rows_along is not None
            storage = p.workspace.block_buffer(self.loop, type, self._rows_along, self.step, fresh)
        p.record.append(PlanStep(self.step, step, (), storage))
        # Nothing else takes memory before the lines of this step are written.
        p.workspace.release(storage, self.step)
        return p.use(storage.name)

    # Beginning and end.

    def before(self, i: int) -> None:
        self.step = i
        if i in self._begins:
            self._begin(self._begins[i])

    def after(self, i: int) -> None:
        if self.loop is not None and i == self.loop.region.stop - 1:
            self._end(self.loop)

    def _begin(self, region: Region) -> None:
        p = self.planner
        number = len(p.workspace.loops)
        loop = Loop(region, number, Function(f"loop_{number}", "blocks, turn, outside"))
        p.workspace.loops.append("")
        for value, combine in region.totals.items():
            loop.totals[value] = name = self._whole(value, region)
            p.line(f"{name}.fill({_neutral(combine, p.schedule.types[value].dtype)})", region.start)
        for value in region.kept:
            loop.whole[value] = self._given(value, region) or self._whole(value, region)
        self.loop = loop

    def _whole(self, value: int, region: Region) -> str:
        """A whole array that the loop fills or adds to: a result or a buffer."""
        p, type = self.planner, self.planner.schedule.types[value]
        if value in p.results:
            p.fresh(p.results[value], type, region.start)
            return p.results[value]
        return p.buffer(value, type, region.start)

    def _given(self, value: int, region: Region) -> str:
        """The array of a donated input that the rows of `value` may be written to.

        Nothing may read the input after the step that makes `value`, nor rows of it other than
        those of the block, nor a view of it in that step, and no step of the loop may fail.
        """
        p, schedule = self.planner, self.planner.schedule
        j = p.left_in.get(value)
        if j is None or schedule.last[j] >= region.stop or region.start < p.settled:
            return ""
        for k, role in enumerate(region.roles):
            step = schedule.steps[region.start + k]
            for operand, axis in zip(step.inputs, role.operands, strict=True):
                if schedule.root[operand] == j and (operand != j or axis != region.axis[value]):
                    return ""
            if value in step.outputs:
                ufunc = bool(SPELLINGS[step.op.name].ufunc)
                alone = schedule.last[j] <= region.start + k
                return p.use(p.places[j].name) if ufunc and alone else ""
        return ""

    def _end(self, loop: Loop) -> None:
        p, region = self.planner, loop.region
        if loop.shares:
            loop.body.line("turn()")
        for share in loop.shares:
            p.line(share.line, share.number)
            p.note_total(share.number, share.step, share.part, share.total)
            p.free(share.part, region.stop - 1)
        self.loop = None
        if region.threads > 1:
            self._call(loop)
        else:
            self._lay_out(loop, p.parts.current, f"w[{loop.number}]")
        for value, name in (*loop.totals.items(), *loop.whole.items()):
            p.places[value] = Place(name, p.schedule.types[value].shape)
        for i in region.views:
            step = p.schedule.steps[i]
            p.set_views(step, SPELLINGS[step.op.name])
        p.release(region.stop - 1, loop.touched)

    def _lay_out(self, loop: Loop, function: Function, blocks: str) -> None:
        """Write the loop over `blocks` into `function`."""
        for line in self.planner.workspace.loop_header(loop, blocks):
            function.line(line)
        for line, i in zip(loop.body.lines, loop.body.steps, strict=True):
            function.line(f"    {line}", i)

    def _call(self, loop: Loop) -> None:
        """Write the loop as a function, and the call by which threads share its blocks."""
        p, names = self.planner, list(loop.outside)
        groups = [names[i : i + MANY] for i in range(0, len(names), MANY)]
        function = Function(loop.body.name, loop.body.parameters)
        for k, group in enumerate(groups):
            function.line(f"{tuple_text(group)[1:-1]} = outside[{k}]")
        self._lay_out(loop, function, "blocks")
        self.functions.append(function)
        outside = tuple_text([tuple_text(g) for g in groups])
        threads, number = loop.region.threads, loop.number
        p.line(
            f"share({function.name}, w[{number}], {outside}, {threads}, {number}, space, spares)",
            -1,
        )

    # The steps of a loop.

    def write(self, i: int, step: Step) -> None:
        assert self.loop is not None
        p, region = self.planner, self.loop.region
        role = region.roles[i - region.start]
        self._rows_along = role.operands[0]
        spelling = SPELLINGS[step.op.name]
        local = narrowed(step, role, region.rows)
        if spelling.view is not None and p.schedule.is_view(step.outputs[0]):
            place, axis = p.places[step.inputs[0]], role.operands[0]
            for k, value in enumerate(step.outputs):
                p.places[value] = p.viewed(local, spelling, k, place, axis, role.axis)
            return
        places, args = [], []
        for k, value in enumerate(step.inputs):
            place = self._operand(step, k, value, role.operands[k], k in spelling.broadcasts)
            places.append(place)
            args.append(
                p.use(place.name)
                if k in spelling.broadcasts
                else p.full(place, local.operands[k], role.operands[k])
            )
        if role.axis is None:
            self._add_up(i, local, role, spelling, args, places)
        else:
            self._compute(i, local, role.axis, spelling, places, args)

    def _operand(self, step: Step, k: int, value: int, axis: int | None, broadcasts: bool) -> Place:
        """Where operand `k` is, cut to the rows of the block if it is from outside."""
        loop, p = self.loop, self.planner
        assert loop is not None
        place = p.places[value]
        if axis is None or value in loop.region.axis:
            return place
        type = step.operands[k]
        if not broadcasts:
            strides = place.layout.expanded(type.shape).strides
            place = Place(p.full(place, type), type.shape, plain=False, strides=strides)
        shape, cut = local_shape(place.shape, type.shape, axis, loop.region.rows)
        if cut is None:
            return place
        name = self._cut(place.name, cut)
        return Place(name, shape, plain=False, strides=place.layout.strides)

    def _cut(self, name: str, axis: int) -> str:
        """The rows of the block of what is called `name`."""
        loop, p = self.loop, self.planner
        assert loop is not None
        key = (name, axis)
        if key not in loop.slices:
            loop.slices[key] = local = p.names.counted("v")
            p.line(f"{local} = {p.use(name)}[{':, ' * axis}s]", self.step)
            p.ledger.hold(object_bytes(axis + 1))
            loop.inner.add(local)
        return loop.slices[key]

    def _add_up(
        self,
        i: int,
        step: Step,
        role: Role,
        spelling: Spelling,
        args: list[str],
        places: list[Place],
    ) -> None:
        """Add the block's share of a total, or combine it in another way."""
        loop, p = self.loop, self.planner
        assert loop is not None
        value, type = step.outputs[0], step.results[0]
        storage = p.workspace.block_buffer(loop, type, None, i, p.names.counted("b"))
        part, total = p.use(storage.name), p.use(loop.totals[value])
        p.note(i, step, storage)
        for line in spelling.write(p.call(step, args, part, None, _is_plain(places, step))):
            p.line(line, i)
        out = "out=" if role.combine in _OUT_BY_NAME else ""
        line = f"{p.np(role.combine)}({total}, {part}, {out}{total})"
        if loop.region.threads > 1:
            loop.shares.append(Share(line, i, step, storage, p.storages.get(value)))
            return
        p.line(line, i)
        p.note_total(i, step, storage, p.storages.get(value))
        p.free(storage, i)

    def _compute(
        self,
        i: int,
        step: Step,
        axis: int,
        spelling: Spelling,
        places: list[Place],
        args: list[str],
    ) -> None:
        loop, p = self.loop, self.planner
        assert loop is not None
        value, type = step.outputs[0], step.results[0]
        whole = loop.whole.get(value)
        strides = row_major(p.schedule.types[value].shape).strides
        if whole is not None and (axis == 0 or spelling.ufunc):
            out = self._cut(whole, axis)
            p.places[value] = Place(out, type.shape, plain=False, strides=strides)
            p.weigh(step, spelling, places)
            p.note(i, step, p.storages.get(value))
            self._lines(i, p.call(step, args, out, None, _is_plain(places, step)), spelling)
            return
        taken = p.dying(i, step, spelling, places)
        if taken is not None and whole is None:
            out = p.take_over(step, taken)
        else:
            taken = None
            storage = p.workspace.block_buffer(loop, type, axis, i, p.names.counted("b"))
            if whole is None:
                p.storages[value] = storage
            out = storage.name
        p.places[value] = Place(out, type.shape)
        p.weigh(step, spelling, places)
        p.note(i, step, storage if whole is not None else p.storages[value])
        self._lines(i, p.call(step, args, out, taken, _is_plain(places, step)), spelling)
        if whole is not None:
            # Only ufuncs write to rows that do not lie side by side.
            p.line(f"{self._cut(whole, axis)}[...] = {out}", i)
            name = self._cut(whole, axis)
            p.places[value] = Place(name, type.shape, plain=False, strides=strides)
            p.note_total(i, step, storage, p.storages.get(value))
            p.free(storage, i)

    def _lines(self, i: int, call: Any, spelling: Spelling) -> None:
        for line in spelling.write(call):
            self.planner.line(line, i)


def _is_plain(places: list[Place], step: Step) -> bool:
    """Whether the first operand lies in memory in row-major order, for all that is known."""
    return bool(places) and places[0].plain and places[0].shape == step.operands[0].shape


def _neutral(combine: str, dtype: DType) -> str:
    """What leaves every number as it is when combined with it; a sum starts with minus zero."""
    if combine in ("add", "multiply"):
        one = dtype.type(combine == "multiply").item()
        return scalar_text(-0.0 if dtype.kind == "f" and combine == "add" else one, dtype)
    if dtype.kind in "fb":
        return repr(combine == "minimum") if dtype.kind == "b" else _INFINITY[combine]
    limits = np.iinfo(dtype)
    return repr(int(limits.min if combine == "maximum" else limits.max))
