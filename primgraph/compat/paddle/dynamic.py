"""Tensors that compute eagerly, as Paddle's dynamic mode has them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np

from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.methods import Methods, Variable
from primgraph.compat.paddle.framework import (
    CPUPlace,
    GradientError,
    RequirementError,
    SpentGraphError,
    as_paddle_raises,
    checked_place,
    paddles,
)
from primgraph.compat.paddle.functions.conversions import Conversions
from primgraph.compat.paddle.functions.printing import describe
from primgraph.compat.torch.core.indices import in_two_steps, is_plain
from primgraph.eager.derivatives.differentiable import Differentiable, Hook
from primgraph.eager.derivatives.recording import no_grad as nothing_recorded
from primgraph.eager.inplace.adoption import stand_ins
from primgraph.eager.inplace.in_place import change
from primgraph.eager.inplace.views import Storage, show_elements
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, BuildError, ShapeError
from primgraph.ir.types import as_dtype, complex_dtype
from primgraph.operators.promotion import array_of

T = TypeVar("T")
_gradient_of: Any = vars(Differentiable)["grad"]
_numbers = {"generated_tensor": count(), "eager_tmp": count()}


class Tensor(Conversions, Methods, _Tensor):
    """`pg.Tensor` with what Paddle's has beside the methods of all arrays.

    >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> paddle.sum(x * x).backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
    """

    __slots__ = ("__dict__",)
    shares_detached: ClassVar[bool] = True

    def __init__(self, data: Any = (), *args: Any, **kwargs: Any) -> None:
        """Make a tensor of the elements of `data`, as `to_tensor` does."""
        made = data if isinstance(data, Node) else as_tensor(data, *args, **kwargs).node
        super().__init__(made)

    @property
    def stop_gradient(self) -> bool:
        """Whether derivatives treat it as a constant."""
        return not (self.requires_grad or self.__dict__.get("_is_followed", False))

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        if not isinstance(stop, bool):
            raise ArgumentError(f"stop_gradient is True or False, not {stop!r:.60}")
        if not self.type.is_inexact:
            # Integers have no derivatives, and keep what is set.
            self.__dict__["_is_followed"] = not stop
        elif stop:
            super().detach_()
        else:
            self.requires_grad_()

    @property
    def name(self) -> str:
        """A unique name, which may be set."""
        if "name" not in self.__dict__:
            is_given = self.is_leaf and self.node.step is None
            kind = "generated_tensor" if is_given else "eager_tmp"
            self.__dict__["name"] = f"{kind}_{next(_numbers[kind])}"
        return str(self.__dict__["name"])

    @name.setter
    def name(self, name: str) -> None:
        self.__dict__["name"] = name

    persistable = False

    @property
    def place(self) -> CPUPlace:
        """The processor."""
        return CPUPlace()

    @property
    def data(self) -> Any:
        """The same elements, shared, without what they were computed from."""
        return self.detach()

    @data.setter
    def data(self, value: _Tensor) -> None:
        show_elements(self, value)

    @property
    def strides(self) -> list[int]:
        """The distances of neighbours along each axis, in elements."""
        array = np.empty(tuple(self.shape), np.int8)
        return list(array.strides)

    @property
    def inplace_version(self) -> int:
        """The number of in-place changes."""
        alias: Any = self._alias
        storage = alias if isinstance(alias, Storage) else getattr(alias, "storage", None)
        shared = 0 if storage is None else storage.version
        return int(max(shared, self.__dict__.get("_changes", 0)))

    def backward(  # type: ignore[override]
        self, grad_tensor: _Tensor | None = None, retain_graph: bool = False
    ) -> None:
        """Add gradients to `.grad` of the leaves that it depends on; the seed is ones by default.

        A tensor that stops gradients has none. Raises `SpentGraphError` the second time, unless
        `retain_graph` was given the first.
        """
        if self.stop_gradient:
            return
        if grad_tensor is not None and tuple(grad_tensor.shape) != self.type.shape:
            raise RequirementError(
                f"the seed of shape {list(grad_tensor.shape)} mismatches the tensor of shape "
                f"{list(self.shape)}"
            )
        seed = np.ones(self.type.shape, self.type.dtype) if grad_tensor is None else grad_tensor
        with SpentGraphError.instead():
            super().backward(seed, retain_graph)

    @property
    def grad(self) -> Any:
        """The gradient that `backward` accumulated, zeros that `clear_grad` left, or None."""
        known = self._backward
        if known is not None and known.gradient is not None:
            return known.gradient
        return self.__dict__.get("_cleared")

    @grad.setter
    def grad(self, gradient: Any) -> None:
        self.__dict__.pop("_cleared", None)
        _gradient_of.__set__(self, gradient)

    def clear_gradient(self, set_to_zero: bool = True) -> None:
        """Let `.grad` be zeros until it gets another gradient, or None."""
        before = self.grad
        self.grad = None
        if set_to_zero and before is not None:
            with nothing_recorded() if before.requires_grad else nullcontext():
                self.__dict__["_cleared"] = before.zero_()

    clear_grad = clear_gradient

    def gradient(self) -> np.ndarray[Any, Any] | None:
        """`.grad` as an array, or None."""
        return None if self.grad is None else self.grad.numpy()

    def retain_grads(self) -> None:
        """Let `backward` fill `.grad` although this is not a leaf."""
        if not self.stop_gradient:
            self.retain_grad()

    @as_paddle_raises
    def register_hook(self, hook: Callable[[Any], Any]) -> Hook:
        """Call `hook` with each gradient by this tensor; a result other than None replaces it."""
        return super().register_hook(hook)

    def set_value(self, value: Any) -> None:
        """Show other elements, of an array or a tensor of the same shape and dtype, from now on."""
        if not isinstance(value, np.ndarray | _Tensor):
            raise RequirementError("set_value takes a tensor or an array of NumPy")
        if tuple(value.shape) != self.type.shape or value.dtype != self.type.dtype:
            raise RequirementError(
                f"set_value of {self.type} takes no value of shape {list(value.shape)} and dtype "
                f"{value.dtype}",
                hint="value.astype(...) converts it",
            )
        if isinstance(value, _Tensor):
            found = value.detach()
        else:
            found = Tensor(array_node(np.array(value)))
        with nothing_recorded():
            change(self, found)

    @as_paddle_raises
    def copy_(self, other: Any, blocking: bool = True) -> Self:
        """Copy the elements of `other` into this tensor."""
        return super().copy_(other)

    @as_paddle_raises
    def fill_(self, value: Any) -> Self:
        """Set all elements to `value`."""
        return super().fill_(value.item() if isinstance(value, _Tensor) else value)

    @as_paddle_raises
    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, list | tuple):
            raise ArgumentError(f"a {type(value).__name__} cannot be assigned to elements")
        if self.type.dtype.kind in "biu":
            value = value.astype(self.type.dtype) if hasattr(value, "dtype") else int(value)
        steps = in_two_steps(index)
        if steps is None:
            super().__setitem__(index, value)
        else:
            first, second = steps
            self[first][second] = value

    def __getitem__(self, index: Any) -> Self:
        steps = None if is_plain(index) else in_two_steps(index)
        if steps is None:
            return super().__getitem__(index)
        first, second = steps
        return super().__getitem__(first)[second]

    def replace_by(self, value: Any) -> Self:
        """Show `value`, computed from this tensor by an in-place function, from now on."""
        if value.shape != self.shape:
            raise ShapeError(
                f"the shape of the result, {list(value.shape)}, is different from that of the "
                f"tensor that is changed in place, {list(self.shape)}"
            )
        self.__dict__["_changes"] = self.__dict__.get("_changes", 0) + 1
        if value.dtype == self.dtype:
            return change(self, value)
        self.show(value.node)
        return self

    def __eq__(self, other: Any) -> Any:
        return False if other is None else super().__eq__(other)

    def __ne__(self, other: Any) -> Any:
        return True if other is None else super().__ne__(other)

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return describe(self._array(), self.stop_gradient)


stand_ins[Tensor] = Variable


@paddles
def to_tensor(
    data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> Tensor:
    """Return a tensor with copies of the elements of `data`.

    Python floats take the default dtype. Gradients are computed for it if `stop_gradient` is False.

    >>> paddle.to_tensor([1.0, 2.0])
    Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
           [1., 2.])
    """
    checked_place("to_tensor", place)
    made = as_tensor(data, dtype)
    made.stop_gradient = stop_gradient
    return made


def as_tensor(data: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of those elements, a constant for derivatives."""
    if data is None or isinstance(data, str | dict | set):
        raise ArgumentError(
            f"to_tensor takes numbers, lists, arrays and tensors, not {type(data).__name__}"
        )
    if isinstance(data, _Tensor):
        data = data.numpy()
    elif isinstance(data, list | tuple) and any(isinstance(d, _Tensor) for d in data):
        data = np.stack([d.numpy() if isinstance(d, _Tensor) else np.asarray(d) for d in data])
    array = array_of(data, None if dtype is None else as_dtype(dtype))
    if dtype is None and not isinstance(data, np.ndarray | np.generic):
        default = dtype_or_default(None)
        if array.dtype.kind in "fc":
            array = array.astype(default if array.dtype.kind == "f" else complex_dtype(default))
    return Tensor(array_node(np.array(array)))


def as_paddles(made: T) -> T:
    """Convert a tensor of primgraph to a tensor of this package; return other objects as they
    are."""
    return cast("T", Tensor(made.node)) if isinstance(made, _Tensor) else made


__all__ = ["BuildError", "GradientError", "Tensor", "as_paddles", "as_tensor", "to_tensor"]
