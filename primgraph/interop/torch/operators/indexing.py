"""Functions of operators that read and write elements at positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


@means("aten.embedding")
def _embedding(
    site: Site, weight: Variable, index: Variable, padding: int = -1, *options: Any
) -> Any:
    return F.embedding(index, weight)


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
        if known != list(range(known[0], known[0] + len(known))) or values.ndim > len(known):
            site.refuse("indices of some axes")
        moved = names.permute(x, order)
        chosen = [i for i in indices if i is not None]
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
