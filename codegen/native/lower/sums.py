"""Sums of products of matrices, of which each is added to what is there of those before.

The gradient of a matrix that many rows of a series go through is such a sum. Without this, each
product would be left in memory of its own, and read again to be added.
"""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.native.items import Product
from primgraph.codegen.native.lower.access import whole
from primgraph.codegen.native.lower.lowering_state import Draft
from primgraph.codegen.plan.schedule import Step


def add_up(draft: Draft, step: Step) -> bool:
    """Let a sum of two products, or of such a sum and a product, be left by the later product.

    Returns False, and does nothing, where somebody else needs one of the two, where one is anything
    else, or where NumPy does a step between them.
    """
    found = [draft.sums.get(v) for v in step.inputs]
    if None in found or any(draft.uses[v] > 1 for v in step.inputs):
        return False
    (root, at), (last, end) = sorted(filter(None, found), key=lambda sum: sum[1])
    item = draft.items[end]
    # What is later has to be one product alone.
    if not isinstance(item, Product) or item.is_added or at < draft.after_numpy:
        return False
    assert item.value == last
    (value,) = step.outputs
    draft.items[end] = replace(item, value=root, is_added=True)
    draft.access[value] = whole(root, draft.types[value].shape)
    draft.made_by[root] = end
    draft.last[root] = max(end, draft.last.get(root, -1))
    draft.sums[value] = root, end
    return True
