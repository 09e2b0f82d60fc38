"""Tensors that compute eagerly, as Paddle's dynamic mode has them."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from primgraph.compat.paddle.defaults import dtype_or_default
from primgraph.compat.paddle.framework import CPUPlace, paddles
from primgraph.compat.paddle.methods import Methods, Variable
from primgraph.eager.derivatives.recording import no_grad as nothing_recorded
from primgraph.eager.inplace.adoption import stand_ins
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype
from primgraph.operators.promotion import array_of

T = TypeVar("T")


class Tensor(Methods, _Tensor):
    """`pg.Tensor` with what Paddle's has beside the methods of all arrays.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.sum(x * x).backward()
    >>> x.grad
    tensor([2., 4.], dtype=float32)
    """

    __slots__ = ()
    shares_detached: ClassVar[bool] = True

    @property
    def stop_gradient(self) -> bool:
        """Whether derivatives treat it as a constant."""
        return not self.requires_grad

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        if not isinstance(stop, bool):
            raise ArgumentError(f"stop_gradient is True or False, not {stop!r:.60}")
        if stop:
            self.detach_()
        else:
            self.requires_grad_()

    @property
    def place(self) -> CPUPlace:
        """The processor."""
        return CPUPlace()

    def backward(  # type: ignore[override]
        self, grad_tensor: _Tensor | None = None, retain_graph: bool = False
    ) -> None:
        """Add gradients to `.grad` of the leaves that it depends on; the seed is ones by default.

        See `pg.autograd.backward`.
        """
        seed = np.ones(self.shape, self.dtype) if grad_tensor is None else grad_tensor
        super().backward(seed, retain_graph)

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Let `.grad` be zeros, or None."""
        if set_to_zero and self.grad is not None:
            self.grad.zero_()
        else:
            self.grad = None

    clear_grad = clear_gradient

    def gradient(self) -> np.ndarray[Any, Any] | None:
        """`.grad` as an array, or None."""
        return None if self.grad is None else self.grad.numpy()

    def set_value(self, value: Any) -> None:
        """Other elements from now on."""
        with nothing_recorded():
            self.copy_(value)


stand_ins[Tensor] = Variable


@paddles
def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """Return a tensor with copies of the elements of `data`.

    Python floats take the default dtype. Gradients are computed for it if `stop_gradient` is False.

    >>> paddle.to_tensor([1.0, 2.0])
    tensor([1., 2.], dtype=float32)
    """
    if place is not None and not isinstance(place, CPUPlace) and str(place) != "cpu":
        raise ArgumentError(
            f"to_tensor: there is no place {place!r:.60}: tensors are in the memory of the CPU",
            hint="leave out place",
        )
    made = as_tensor(data, dtype)
    made.stop_gradient = stop_gradient
    return made


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """A tensor of those elements, a constant for derivatives."""
    if isinstance(data, _Tensor):
        data = data.numpy()
    array = array_of(data, None if dtype is None else as_dtype(dtype))
    if dtype is None and array.dtype.kind == "f" and not isinstance(data, np.ndarray | np.generic):
        array = array.astype(dtype_or_default(None))
    return Tensor(array_node(np.array(array)))


def as_paddles(made: T) -> T:
    """Convert a tensor of primgraph to a tensor of this package; return other objects as they
    are."""
    return cast("T", Tensor(made.node)) if isinstance(made, _Tensor) else made
