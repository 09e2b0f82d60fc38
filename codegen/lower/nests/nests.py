"""Loop fusion: elementwise steps, sums and extrema over one index set become one nest.

Steps become items in an order of their own. A nest runs over the indices of a shape, without axes
of size 1. Its values are scalars, and only values that others read are stored. Matrix products are
items too, and steps that this back end cannot express become host calls. Later passes only decide
how items are printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from primgraph.codegen.ir.access import loop_strides, row_major, strides_onto, view_access, whole
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Schedule, Step, schedule
from primgraph.codegen.ir.statements import (
    Control,
    HostCall,
    Nests,
    Node,
    Operand,
    Product,
    Region,
    Routine,
)
from primgraph.codegen.ir.text import origin_text
from primgraph.codegen.lower.nests.copy_elision import expect, join, place
from primgraph.codegen.lower.nests.indexing import (
    add_at,
    can_index,
    take,
    take_along,
)
from primgraph.codegen.lower.nests.lowering_state import (
    LoweringState,
    constants_of,
    copy_or_constant,
    copy_value,
    memory_access,
    whole_operands,
)
from primgraph.codegen.lower.nests.pairs import pair_loops
from primgraph.codegen.lower.nests.regions import LIMITS, add_blocks, regions_of, traffic
from primgraph.codegen.lower.nests.routines import pays, routine
from primgraph.codegen.lower.nests.shared_padding import prepare_graph
from primgraph.codegen.ops.c.spellings import (
    FUNCTIONS,
    SPELLINGS,
    c_type,
    expression_writer,
    function,
    inline_power,
    literal,
)
from primgraph.ir.dims import is_open
from primgraph.ir.graph import COUNTED, SIZE
from primgraph.ir.index_maps import IndexMap
from primgraph.ir.primitive import Op
from primgraph.ir.sizes import names_in_params
from primgraph.primitives.constants import full
from primgraph.primitives.control import Flow
from primgraph.primitives.elementwise import add
from primgraph.primitives.indexing import gather, placed, scatter_add
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_max, reduce_min, reduce_prod, reduce_sum
from primgraph.primitives.shapes import concat, pad, slice_assign
from primgraph.primitives.sorting import reorder, sort_by
from primgraph.primitives.windows import overlap_add, windows

REDUCTIONS: dict[Op, str] = {
    reduce_sum: "sum",
    overlap_add: "sum",
    reduce_prod: "prod",
    reduce_max: "max",
    reduce_min: "min",
}


def nests(
    steps: Schedule, limits: Limits = LIMITS, *, complete: bool = False, alone: bool = False
) -> Nests:
    """Lower `steps` to items, in blocks of rows according to `limits`.

    With `complete`, NumPy gets no step that C can do, even if NumPy is faster. With `alone`, LAPACK
    is not used either.
    """
    arranged, regions = regions_of(steps, limits)

    def lowered(steps: Schedule, regions: Sequence[Region]) -> Nests:
        return _lower(LoweringState(steps, complete, limits, alone), regions, limits)

    plan = lowered(arranged, regions)
    if regions and limits.rows is None and any(s.op.moves for s in steps.steps):
        # Loops over the whole read the parts of joined arrays in place, which blocks may cut.
        plan = min(plan, lowered(steps, ()), key=traffic)
    return plan if alone else pair_loops(plan)


def _lower(draft: LoweringState, regions: Sequence[Region], limits: Limits) -> Nests:
    steps, at = draft.schedule, 0
    expect(draft)
    for region in regions:
        for step in steps.steps[at : region.start]:
            _add(draft, step)
        at = region.start
        if add_blocks(draft, region, limits, _add):
            at = region.stop
    for step in steps.steps[at:]:
        _add(draft, step)
    outputs: list[int] = []
    for v in steps.outputs:
        root = draft.own_memory(v)
        outputs.append(copy_value(draft, v) if root is None or root in outputs else root)
        draft.store_value(outputs[-1])
    return draft.finish_nests(outputs)


def _add(draft: LoweringState, step: Step) -> None:
    op, form = step.op, step.form
    types = (*form.operands, *form.results)
    if op is full and c_type(form.results[0].dtype):
        type = form.results[0]
        draft.numbers[step.outputs[0]] = Operand(literal(step.params["value"], type.dtype))
        draft.exact[step.outputs[0]] = step.params["value"]
    elif op.literal and names_in_params(step.eqn.params):
        _count(draft, step)
    elif op.literal:
        value = step.outputs[0]
        data = op.impl(**step.params)
        draft.constants[value] = np.ascontiguousarray(data)
        draft.access[value] = whole(value, form.results[0].shape)
    elif form.seen or op is windows:
        _see(draft, step)
    elif op is assumed:
        draft.same(step.outputs[0], step.inputs[0])
    elif op is placed:
        place(draft, step)
    elif op is reorder or (op is sort_by and pays(step)):
        take_along(draft, step)
    elif op in (gather, scatter_add) and can_index(draft, step):
        (take if op is gather else add_at)(draft, step)
    elif op in (pad, slice_assign, concat):
        join(draft, step)
    elif not draft.alone and any(t.is_complex for t in types) and expression_writer(step):
        _compute(draft, step)
    elif not all(c_type(t.dtype) for t in types):
        _outside(draft, step, _dtype_reason(step))
    elif op is add and _add_up(draft, step):
        pass
    elif op in SPELLINGS or op in FUNCTIONS:
        _compute(draft, step)
    elif op in REDUCTIONS:
        _reduce(draft, step)
    elif routine(step, draft.alone) is not None and (draft.complete or pays(step)):
        _routine(draft, step)
    elif op.has_bodies:
        _control(draft, step, _bodies(step, draft))
    elif op is matmul and form.operands[0].dtype.kind == "f":
        _multiply(draft, step)
    elif routine(step, draft.alone) is not None:
        _outside(draft, step, "NumPy is faster at this size")
    else:
        _outside(draft, step)


def _see(draft: LoweringState, step: Step) -> None:
    source = step.inputs[0]
    for k, value in enumerate(step.outputs):
        if source in draft.numbers:
            draft.same(value, source)
            continue
        found = view_access(draft.access[source], step, k)
        if found is None:
            copy = copy_value(draft, source)
            found = view_access(whole(copy, step.operands[0].shape), step, k)
            assert found is not None
        draft.access[value] = found


def _count(draft: LoweringState, step: Step) -> None:
    """Lower symbolic sizes and the indices along an axis."""
    (value,), (type,) = step.outputs, step.results
    kind = c_type(type.dtype)
    size, axis = step.held(SIZE), step.held(COUNTED)
    if size is not None and kind and (type.is_float or type.dtype.itemsize == 8):
        draft.numbers[value] = Operand(cast=kind, offset=size)
    elif axis is not None and type.shape[axis] == 1 and kind:
        draft.numbers[value] = Operand(literal(0, type.dtype))
        draft.exact[value] = 0
    elif axis is not None and kind:
        at = draft.nest_for(type.shape, ())
        strides = [int(i == axis) for i in range(type.ndim)]
        along = loop_strides(strides, type.shape)
        counted = Operand(cast=kind, strides=along)
        draft.compute(at, Node(None, value, "copy", "", (counted,)))
    else:
        _outside(draft, step)


def _compute(draft: LoweringState, step: Step) -> None:
    shape, value = step.results[0].shape, step.outputs[0]
    inline = "" if draft.alone else inline_power(step, draft.exact.get(step.inputs[-1]))
    name, number = ("", "") if inline else function(step)
    if name and step.results[0].dtype.kind != "f":
        _outside(draft, step)
        return
    spelled = None if name else expression_writer(step)
    if not name and (spelled is None or spelled(["x"] * len(step.inputs), step) is None):
        _outside(draft, step)
        return
    at = draft.nest_for(shape, step.inputs)
    operands = [draft.operand(v, shape, at) for v in step.inputs]
    if number:
        operands.append(Operand(text=number))
    kind = "call" if name else "text"
    draft.compute(at, Node(step, value, kind, name or inline, tuple(operands)))


def _reduce(draft: LoweringState, step: Step) -> None:
    (x,), (value,) = step.inputs, step.outputs
    shape, shown = step.operands[0].shape, step.dependence(0, 0)
    assert isinstance(shown, IndexMap)
    at = draft.nest_for(shape, (x,))
    _, strides = strides_onto(shown.result, row_major(step.results[0].shape), shown.operand)
    operand, along = draft.operand(x, shape, at), loop_strides(strides, shape)
    draft.compute(at, Node(step, value, REDUCTIONS[step.op], "", (operand,), along))
    draft.reduced.add(value)


def _multiply(draft: LoweringState, step: Step) -> None:
    inputs = [copy_or_constant(draft, v) if v in draft.numbers else v for v in step.inputs]
    at = len(draft.items)
    left, right = (memory_access(draft, v, at) for v in inputs)
    draft.last_item(step.outputs[0], at)
    draft.items.append(Product(step, step.outputs[0], left, right))
    draft.sums[step.outputs[0]] = step.outputs[0], at


def _add_up(draft: LoweringState, step: Step) -> bool:
    """Accumulate a sum of products in place, by the later product.

    The gradient by a matrix that is used in many steps is such a sum. Otherwise each product would
    be stored, and read again to be added.

    Return False, without effect, if one operand has another use or is not a product, or if a host
    call comes between them.
    """
    found = [draft.sums.get(v) for v in step.inputs]
    if None in found or any(draft.schedule.uses[v] > 1 for v in step.inputs):
        return False
    (root, at), (last, end) = sorted(filter(None, found), key=lambda sum: sum[1])
    item = draft.items[end]
    # The later operand has to be a single product.
    if not isinstance(item, Product) or item.is_added or at < draft.after_numpy:
        return False
    assert item.value == last
    (value,) = step.outputs
    draft.items[end] = replace(item, value=root, is_added=True)
    draft.access[value] = whole(root, draft.types[value].shape)
    draft.made_by[root] = end
    draft.keep(root, end)
    draft.sums[value] = root, end
    return True


def _outside(draft: LoweringState, step: Step, reason: str = "") -> None:
    """Leave a step to NumPy; without another `reason` C has no such function."""
    operands = whole_operands(draft, step)
    draft.after_numpy = draft.next_item(step, operands) + 1
    reason = reason or f"C has no {step.op.name}"
    draft.items.append(HostCall(step, step.outputs, operands, reason))


def _dtype_reason(step: Step) -> str:
    types = (*step.operands, *step.results)
    dtype = next(t.dtype for t in types if not c_type(t.dtype))
    return f"C has no {step.op.name} of {dtype}"


def _reason_of_bodies(outside: Sequence[HostCall]) -> str:
    """Return why NumPy runs a branch or a loop: what C cannot do in its bodies."""
    reasons = [
        item.reason if item.step.op.has_bodies else f"{item.reason}{origin_text(item.step)}"
        for item in outside
    ]
    return ", ".join(dict.fromkeys(reasons))


def _routine(draft: LoweringState, step: Step) -> None:
    operands = whole_operands(draft, step)
    draft.next_item(step, operands)
    draft.items.append(Routine(step, step.outputs, operands))


def _control(draft: LoweringState, step: Step, bodies: Sequence[Nests]) -> None:
    """Lower a branch or a loop; NumPy runs the whole if C cannot do a step of its bodies."""
    outside = [item for body in bodies for item in body.items if isinstance(item, HostCall)]
    if outside or not bodies:
        reason = _reason_of_bodies(outside)
        if draft.alone and not reason:
            reason = "a loop without a bound on its trips keeps something of each of them"
        _outside(draft, step, reason)
        return
    operands = whole_operands(draft, step)
    at = draft.next_item(step, operands)
    constants = [constants_of(draft, body, at) for body in bodies]
    draft.items.append(Control(step, step.outputs, operands, tuple(bodies), tuple(constants)))


def _bodies(step: Step, draft: LoweringState) -> list[Nests]:
    """Lower the bodies of a branch or loop; empty if this back end cannot do it."""
    regions = step.regions
    if regions is None:
        return []
    # Files that stand alone allocate no memory, so stacks cannot grow.
    along = regions.flow is Flow.ROWS and not regions.stacks
    if draft.alone and (along or any(is_open(type.shape) for type in step.results)):
        return []
    limits, alone = draft.limits or LIMITS, draft.alone
    bodies = regions.graphs if alone else [prepare_graph(body) for body in regions.graphs]
    return [nests(schedule(body), limits, complete=True, alone=alone) for body in bodies]
