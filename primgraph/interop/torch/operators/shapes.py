"""Functions of operators that move elements: views, parts, joins and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.compat.torch.functions.elements import unfold
from primgraph.interop.torch.table import F, Site, means, means_each, names
from primgraph.operators import broadcast_to, reshape
from primgraph.operators.variable import Variable

means_each({
    f"aten.{name}": getattr(names, name)
    for name in (
        "as_strided", "cat", "diag", "diagonal", "flip", "movedim", "permute", "pixel_shuffle",
        "roll", "split_with_sizes", "squeeze", "stack", "t", "transpose", "unbind", "unsqueeze",
    )
    if hasattr(names, name)
})  # fmt: skip
means_each(
    {
        "aten.view_as_real": names.view_as_real,
        "aten.view_as_complex": names.view_as_complex,
        "aten.pixel_unshuffle": F.pixel_unshuffle,
        "aten.constant_pad_nd": lambda x, pad, value=0: F.pad(x, pad, "constant", value),
    }
)
means_each(
    {
        f"aten.{kind}_pad{n}d": lambda x, pad, mode=mode: F.pad(x, pad, mode)
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for n in (1, 2, 3)
    }
)


@means("aten.view", "aten._unsafe_view", "aten.reshape", "aten.view_copy")
def _view(site: Site, x: Variable, shape: Any) -> Any:
    if not isinstance(shape, list):
        site.refuse("a dtype")
    return reshape(x, tuple(shape))


@means("aten.expand", "aten.broadcast_to", "aten.expand_copy")
def _expand(site: Site, x: Variable, shape: Sequence[Any], implicit: bool = False) -> Variable:
    more = len(shape) - x.ndim
    wanted = [x.shape[k - more] if type(n) is int and n < 0 else n for k, n in enumerate(shape)]
    return broadcast_to(x, tuple(wanted))


@means("aten.repeat")
def _repeat(site: Site, x: Variable, repeats: Sequence[int]) -> Any:
    return names.tile(x, tuple(repeats))


@means("aten.select")
def _select(site: Site, x: Variable, dim: int, index: Any) -> Any:
    return names.select(x, dim, index)


@means("aten.slice")
def _slice(
    site: Site, x: Variable, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Variable:
    # Sizes are smaller than the largest integer, which torch has for the end.
    last = None if type(end) is int and end >= 2**62 else end
    found: Variable = x[(*[slice(None)] * (dim % x.ndim), slice(start, last, step))]
    return found


@means("aten.split")
def _split(site: Site, x: Variable, size: Any, dim: int = 0) -> Any:
    return names.split(x, size, dim)


@means("aten.sym_size")
def _size(site: Site, x: Variable, dim: int) -> Any:
    return x.shape[dim]


@means("aten.sym_numel")
def _numel(site: Site, x: Variable) -> Any:
    return x.type.size


@means("aten.unfold")
def _unfold(site: Site, x: Variable, dim: int, size: int, step: int) -> Any:
    return unfold(x, dim, size, step)


@means("aten.im2col")
def _im2col(site: Site, x: Variable, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    return F.unfold(x, kernel, dilation, padding, stride)


@means("aten.col2im")
def _col2im(
    site: Site, x: Variable, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    return F.fold(x, size, kernel, dilation, padding, stride)
