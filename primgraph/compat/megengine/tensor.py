"""The tensor of MegEngine, made from what it is to hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any, ClassVar, Self, final

import numpy as np

from primgraph.compat.promotion import promote_arguments
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.ir.types import FLOAT32, as_axis, as_dtype
from primgraph.operators.handle import Axes
from primgraph.operators.promotion import array_of

# What Python's numbers are, by kind.
_DTYPES = {"f": FLOAT32, "i": np.dtype("int32")}


class Tensor(_Tensor):
    """`pg.Tensor`, made from an array or numbers: Python's are of float32 or int32.

    >>> megengine.Tensor([1.0, 2.0]) + 1
    tensor([2., 3.], dtype=float32)
    """

    __slots__ = ()
    writes_through: ClassVar[bool] = False

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(data if isinstance(data, Node) else _build_leaf(data, dtype))

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which MegEngine promotes them; None for the same."""
        return promote_arguments(function, args, FLOAT32)

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Self:  # type: ignore[override]
        """Sum over `axis`, in the dtype of the elements."""
        return self._dispatch("sum", self, axis, keepdims, dtype=self.dtype)

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Self:  # type: ignore[override]
        """Product over `axis`, in the dtype of the elements."""
        return self._dispatch("prod", self, axis, keepdims, dtype=self.dtype)

    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Self:  # type: ignore[override]
        """The axes from `start_axis` to `end_axis` as one."""
        shape = self.shape
        first, last = as_axis(start_axis, len(shape)), as_axis(end_axis, len(shape))
        middle = product(shape[first : last + 1])
        return self._dispatch("reshape", self, (*shape[:first], middle, *shape[last + 1 :]))

    def reset_zero(self) -> Self:
        """Zeros from now on."""
        with no_grad():
            self.zero_()
        return self

    def to(self, device: str) -> Self:
        """Itself, as there is no other place than the processor."""
        return self


@final
class Parameter(Tensor):
    """A tensor that is trained: optimizers and modules take it, and derivatives go through it.

    >>> w = megengine.Parameter([1.0, 2.0])
    >>> with megengine.autodiff.GradManager().attach([w]) as manager:
    ...     _ = manager.backward((w * w).sum())
    ...
    >>> w.grad
    tensor([2., 4.], dtype=float32)
    """

    __slots__ = ()
    family = Tensor

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(data, dtype)
        self.requires_grad_()


def _build_leaf(data: Any, dtype: Any) -> Node:
    """A leaf of the elements of `data`, which are copied."""
    if isinstance(data, _Tensor):
        data = data.numpy()
    array = array_of(data, None if dtype is None else as_dtype(dtype))
    if dtype is None and not isinstance(data, np.ndarray | np.generic):
        array = array.astype(
            {"f": FLOAT32, "i": np.dtype("int32")}.get(array.dtype.kind, array.dtype)
        )
    return array_node(np.array(array))


def tensor(data: Any, dtype: Any = None, device: str | None = None) -> Tensor:
    """Return a tensor with copies of the elements of `data`.

    >>> megengine.tensor([1.0, 2.0])
    tensor([1., 2.], dtype=float32)
    """
    return Tensor(data, dtype)
