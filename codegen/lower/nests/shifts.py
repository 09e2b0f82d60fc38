"""Arrays joined from parts of others, read in place: rolls, and differences with wrapped edges.

The nest that reads such an array reads the parts where they are. Along the innermost loop there are
no conditions, as the edges are peeled: each piece of the loop reads one part. Arrays that are also
read by other steps are joined in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Node, Operand
from primgraph.codegen.lower.nests.lowering_state import LoweringState
from primgraph.codegen.ops.c.spellings import c_type
from primgraph.ir.types import Shape

# Maximum number of parts of an array, and of pieces of a loop, each of which repeats the nest.
_PARTS, _PIECES = 3, 6


def read_parts(draft: LoweringState, step: Step, starts: Sequence[Shape]) -> bool:
    """Read the parts of a joined array, which begin at `starts`, in the nest that reads the whole.

    Return False, without effect, if the array is better joined in memory.
    """
    (value,), shape = step.outputs, step.results[0].shape
    if len(starts) > _PARTS or not _is_read_by_element(draft, step):
        return False
    axes = [i for i, n in enumerate(shape) if any(s[i] for s in starts)]
    if len(axes) != 1 or shape[axes[0]] == 1:
        # All parts but one are empty, or there is more than one axis.
        return False
    (axis,), loops = axes, [i for i, n in enumerate(shape) if n != 1]
    accesses = [draft.access[v] for v in step.inputs]
    others = {tuple([a.strides[i] for i in loops if i != axis]) for a in accesses}
    if len(others) > 1:
        # Outside of the innermost loop a part is chosen by its first element only.
        return False
    roots = [a.root for a in accesses]
    at = draft.nest_for(shape, (), max(draft.made_by.get(root, -1) + 1 for root in roots))
    place, edges = loops.index(axis), [s[axis] for s in starts]
    if len(_edges(draft.nest(at).nodes, place).union(edges)) > _PIECES:
        return False
    operands = []
    for access, first in zip(accesses, edges, strict=True):
        draft.read(access.root, at)
        offset = access.offset - first * access.strides[axis]
        strides = tuple([access.strides[i] for i in loops])
        operands.append(Operand(root=access.root, offset=offset, strides=strides))
    counts = [type.shape[axis] for type in step.operands]
    within = tuple(zip(edges, counts, strict=True))
    draft.compute(at, Node(step, value, "parts", "", tuple(operands), (), place, (), within))
    return True


def _is_read_by_element(draft: LoweringState, step: Step) -> bool:
    """Return whether loops may read the parts of the result where they are."""
    (value,), type = step.outputs, step.results[0]
    if draft.alone or value in draft.whole or c_type(type.dtype) is None:
        return False
    if any(t.names for t in (type, *step.operands)) or 0 in type.shape:
        return False
    return not any(v in draft.numbers for v in step.inputs)


def _edges(nodes: Sequence[Node], axis: int) -> set[int]:
    """Return the indices along an axis at which the parts of a nest begin."""
    found = [n for node in nodes if node.kind == "parts" for n in node.within
             if node.offset == axis]  # fmt: skip
    return {first for first, _ in found}
