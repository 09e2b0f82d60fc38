"""Accumulation of matrix products into one result.

The gradient by a matrix that is used in many steps is such a sum. Otherwise each product would be
stored, and read again to be added.
"""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.access import whole
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Product
from primgraph.codegen.lower.nests.lowering_state import LoweringState


def add_up(draft: LoweringState, step: Step) -> bool:
    """Accumulate a sum of products in place, by the later product.

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
