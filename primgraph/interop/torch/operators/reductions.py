"""Functions of reductions, running reductions and sorting."""

from __future__ import annotations

from typing import Any

from primgraph.interop.torch.table import Site, means, means_each, names
from primgraph.operators.variable import Variable

means_each({
    f"aten.{name}": getattr(names, name)
    for name in (
        "all", "amax", "amin", "any", "argmax", "argmin", "argsort", "cummax", "cummin",
        "logcumsumexp", "logsumexp", "median", "topk",
    )
})  # fmt: skip


@means("aten.sum", "aten.mean", "aten.prod", "aten.cumsum", "aten.cumprod")
def _accumulate(site: Site, x: Variable, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    # Sums of integers are of 64 bits.
    name, operand = site.name.split(".")[1], x.astype(site.dtype)
    if args and args[0] == []:
        args = (None, *args[1:])
    return getattr(names, name)(operand, *args, **kwargs)


@means("aten.max", "aten.min")
def _extremum(site: Site, x: Variable, *args: Any, **kwargs: Any) -> Any:
    found = getattr(names, site.name.split(".")[1])(x, *args, **kwargs)
    return tuple(found) if len(site.dtypes) > 1 else found


@means("aten.aminmax")
def _extrema(site: Site, x: Variable, *, dim: Any = None, keepdim: bool = False) -> Any:
    axes = {} if dim is None else {"dim": dim, "keepdim": keepdim}
    return names.amin(x, **axes), names.amax(x, **axes)


@means("aten.var.correction", "aten.std.correction", "aten.var_mean.correction",
       "aten.std_mean.correction")  # fmt: skip
def _spread(
    site: Site, x: Variable, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    ddof = 1 if correction is None else correction
    axes = dim or None
    name = site.name.split(".")[1]
    square = names.var(x, axes, keepdim=keepdim, correction=ddof)
    found = names.sqrt(square) if name.startswith("std") else square
    if not name.endswith("_mean"):
        return found
    mean = names.mean(x) if axes is None else names.mean(x, axes, keepdim)
    return found, mean


@means("aten.sort")
def _sort(site: Site, x: Variable, *args: Any, stable: bool = False, **kwargs: Any) -> Any:
    return tuple(names.sort(x, *args, **kwargs, stable=True))


@means("aten.linalg_vector_norm")
def _norm(
    site: Site, x: Variable, ord: Any = 2, dim: Any = None, keepdim: bool = False, **kwargs: Any
) -> Any:
    return names.linalg.vector_norm(x, ord, dim, keepdim)


@means("aten._softmax", "aten.softmax")
def _softmax(site: Site, x: Variable, dim: int, *half: Any) -> Any:
    return names.softmax(x.astype(site.dtype), dim)


@means("aten._log_softmax", "aten.log_softmax")
def _log_softmax(site: Site, x: Variable, dim: int, *half: Any) -> Any:
    return names.log_softmax(x.astype(site.dtype), dim)
