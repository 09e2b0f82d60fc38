"""Functions of operators that make arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.interop.torch.table import Site, means, names
from primgraph.operators import broadcast_to
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import lift
from primgraph.operators.variable import Variable


def _full(site: Site, shape: Any, value: Any) -> Variable:
    number = value if isinstance(value, Variable) else lift(np.asarray(value, site.dtype))
    return broadcast_to(number.astype(site.dtype), tuple(shape))


@means("aten.full", "aten.new_full")
def _new_full(site: Site, *args: Any, **kwargs: Any) -> Variable:
    *_, shape, value = args
    return _full(site, shape, value)


@means("aten.full_like")
def _full_like(site: Site, x: Variable, value: Any, **kwargs: Any) -> Variable:
    return _full(site, x.shape, value)


@means("aten.zeros", "aten.empty", "aten.new_zeros", "aten.new_empty")
def _zeros(site: Site, *args: Any, **kwargs: Any) -> Variable:
    return _full(site, args[-1], 0)


@means("aten.ones", "aten.new_ones")
def _ones(site: Site, *args: Any, **kwargs: Any) -> Variable:
    return _full(site, args[-1], 1)


@means("aten.zeros_like", "aten.empty_like")
def _zeros_like(site: Site, x: Variable, **kwargs: Any) -> Variable:
    return _full(site, x.shape, 0)


@means("aten.ones_like")
def _ones_like(site: Site, x: Variable, **kwargs: Any) -> Variable:
    return _full(site, x.shape, 1)


@means("aten.empty_permuted")
def _empty_permuted(site: Site, shape: Any, order: Any, **kwargs: Any) -> Variable:
    return _full(site, shape, 0)


@means("aten.scalar_tensor")
def _scalar_tensor(site: Site, value: Any, **kwargs: Any) -> Variable:
    return _full(site, (), value)


@means("aten.arange")
def _arange(site: Site, *bounds: Any, **kwargs: Any) -> Variable:
    found: Variable = functions["arange"](*bounds, dtype=site.dtype)
    return found


@means("aten.linspace")
def _linspace(site: Site, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    return lift(np.linspace(start, end, steps, dtype=site.dtype))


@means("aten.eye")
def _eye(site: Site, n: int, m: int | None = None, **kwargs: Any) -> Variable:
    return lift(np.eye(n, m, dtype=site.dtype))


@means("aten.tril", "aten.triu")
def _triangle(site: Site, x: Variable, diagonal: int = 0) -> Any:
    return getattr(names, site.name.split(".")[1])(x, diagonal)
