"""Functions of operators that read and write elements at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.interop.torch.table import F, Site, means, means_each, names
from primgraph.operators.variable import Variable

means_each({
    f"aten.{name}": getattr(names, name)
    for name in (
        "gather", "index_add", "index_copy", "index_fill", "index_select", "masked_scatter",
        "scatter_add", "searchsorted", "select_scatter", "slice_scatter", "take",
    )
    if hasattr(names, name)
})  # fmt: skip

# Modes of bags of rows.
_MEANS, _MAXIMA = 1, 2


@means("aten.embedding")
def _embedding(
    site: Site, weight: Variable, index: Variable, padding: int = -1, *options: Any
) -> Any:
    return F.embedding(index, weight)


@means("aten._embedding_bag", "aten._embedding_bag_forward_only")
def _embedding_bag(
    site: Site,
    weight: Variable,
    index: Variable,
    offsets: Variable,
    by_frequency: bool = False,
    mode: int = 0,
    is_sparse: bool = False,
    factors: Variable | None = None,
    has_end: bool = False,
    padding: int = -1,
) -> Any:
    """Return sums, means or maxima of rows; the other results are for the gradients of torch."""
    starts = offsets[:-1] if has_end else offsets
    bags = names.searchsorted(starts, names.arange(index.shape[0]), right=True) - 1
    zeros = names.zeros((starts.shape[0], weight.shape[1]), dtype=site.dtype)
    rows = F.embedding(index, weight)
    if mode == _MAXIMA:
        if padding >= 0:
            site.refuse("maxima and padding")
        places = names.broadcast_to(bags[:, None], rows.shape)
        found = names.scatter_reduce(zeros, 0, places, rows, "amax", include_self=False)
        return found, None, None, None
    kept = names.where(index == padding, 0.0, 1.0).astype(site.dtype)
    found = names.index_add(
        zeros, 0, bags, rows * (kept if factors is None else kept * factors)[:, None]
    )
    if mode == _MEANS:
        found = found / names.clamp(names.index_add(zeros[:, :1], 0, bags, kept[:, None]), min=1)
    return found, None, None, None


@means("aten.index", "aten._unsafe_index")
def _index(site: Site, x: Variable, indices: Sequence[Any]) -> Any:
    key = tuple([slice(None) if i is None else i for i in indices])
    return x[key]


@means("aten.index_put", "aten._unsafe_index_put")
def _index_put(
    site: Site, x: Variable, indices: Sequence[Any], values: Variable, accumulate: bool = False
) -> Any:
    if None in [i if i is None else 0 for i in indices]:
        # The axes with indices come first, and return to their places.
        known = [a for a, i in enumerate(indices) if i is not None]
        order = [*known, *[a for a in range(x.ndim) if a not in known]]
        moved = names.permute(x, order)
        chosen = [i for i in indices if i is not None]
        if any(i.dtype == np.bool_ for i in chosen):
            site.refuse("masks of some axes")
        # Those of values are where the indices are, if these are beside each other.
        count = max(i.ndim for i in chosen)
        at = known[0] if known == list(range(known[0], known[0] + len(known))) else 0
        rank = count + x.ndim - len(known)
        values = names.reshape(values, (1,) * (rank - values.ndim) + tuple(values.shape))
        ahead = range(at, at + count)
        values = names.permute(values, [*ahead, *[a for a in range(rank) if a not in ahead]])
        made = names.index_put(moved, chosen, values, accumulate)
        return names.permute(made, [order.index(a) for a in range(x.ndim)])
    return names.index_put(x, indices, values, accumulate)


@means("aten.scatter.src", "aten.scatter.value")
def _scatter(site: Site, x: Variable, dim: int, index: Variable, source: Any) -> Any:
    return names.scatter(x, dim, index, source)


@means("aten.scatter_reduce")
def _scatter_reduce(
    site: Site,
    x: Variable,
    dim: int,
    index: Variable,
    source: Variable,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    return names.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)
