"""The tensor of MegEngine, made from what it is to hold."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from math import prod as product
from typing import Any, ClassVar, Self, final

import numpy as np

from primgraph.compat.promotion import promote_arguments
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.inplace.adoption import stand_ins
from primgraph.eager.inplace.in_place import change
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, DTypeError, OptionError
from primgraph.ir.types import FLOAT32, FLOAT64, DType, as_axis, as_dtype
from primgraph.operators import astype
from primgraph.operators.handle import Axes, Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable as _Variable

INT32 = np.dtype("int32")
# Data without a dtype has these dtypes: MegEngine has no others of these kinds and sizes.
_DTYPES = {FLOAT64: FLOAT32, np.dtype("int64"): INT32}
_MAY_BE_FLOAT64 = (np.ndarray, np.float64)
_DEVICE = re.compile(r"[xc]pu(x|\d+)(:\d+)?")


def check_device(device: Any) -> None:
    """Raise `OptionError` for a device that is not the processor, such as "gpu0"."""
    if device is not None and not _DEVICE.fullmatch(str(device)):
        raise OptionError(f"there is no device {device!r:.60}: tensors are on 'xpux' or 'cpux'")


class TensorMethods(Handle):
    """MegEngine's methods and their arguments, for whatever has elements, here or in a program."""

    __slots__ = ()

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which MegEngine promotes them; None for the same."""
        known = args
        for x in args:
            if isinstance(x, _MAY_BE_FLOAT64):
                known = _without_float64(args)
                break
        found = promote_arguments(function, known, FLOAT32)
        if function.__name__ == "power":
            known = known if found is None else found
            tensors = [isinstance(x, Handle) and x.dtype.kind in "iu" for x in known]
            if any(tensors):
                # MegEngine's powers are floats.
                pairs = zip(known, tensors, strict=True)
                return [astype(x, FLOAT32) if is_integer else x for x, is_integer in pairs]
        return known if found is None and known is not args else found

    @property
    def device(self) -> str:
        """The processor: "xpux:0"."""
        return "xpux:0"

    @property
    def format(self) -> str:
        """The memory format: there is only the default one."""
        return "default"

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Self:  # type: ignore[override]
        """Sum over `axis`, in the dtype of the elements; of bool in int32."""
        return self._dispatch("sum", self, _axes(axis), keepdims, dtype=dtype_of_sum(self))

    def prod(self, axis: Axes = None, keepdims: bool = False) -> Self:  # type: ignore[override]
        """Product over `axis`, in the dtype of the elements; of bool in int32."""
        return self._dispatch("prod", self, _axes(axis), keepdims, dtype=dtype_of_sum(self))

    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Self:  # type: ignore[override]
        """The axes from `start_axis` to `end_axis` as one."""
        shape = self.shape
        first, last = as_axis(start_axis, len(shape)), as_axis(end_axis, len(shape))
        middle = product(shape[first : last + 1])
        return self._dispatch("reshape", self, (*shape[:first], middle, *shape[last + 1 :]))

    def transpose(self, *pattern: Any) -> Self:
        """Permute the axes; "x" in the pattern is a new axis of extent one. Without: reverse them.

        >>> megengine.Tensor([1.0, 2.0]).transpose(0, "x").shape
        (2, 1)
        """
        if len(pattern) == 1 and not isinstance(pattern[0], int | np.integer | str):
            pattern = tuple(pattern[0])
        if "x" not in pattern:
            return self._dispatch("transpose", self, pattern or None)
        kept: Any = self._dispatch("transpose", self, [int(i) for i in pattern if i != "x"])
        return kept[tuple(None if i == "x" else slice(None) for i in pattern)]  # type: ignore[no-any-return]

    def to(self, device: Any) -> Self:
        """Itself, as there is no other place than the processor."""
        check_device(device)
        return self

    def __invert__(self) -> Self:
        if self.dtype.kind != "b":
            raise DTypeError(f"~x is for bool tensors, and this is {self.type}")
        return super().__invert__()


class Variable(TensorMethods, _Variable):
    """`pg.Variable` with MegEngine's methods: what stands for tensors in traced functions."""

    __slots__ = ()


class Tensor(TensorMethods, _Tensor):
    """`pg.Tensor` with MegEngine's methods, made from an array or numbers.

    Floats are of float32 and integers of int32, NumPy's too, unless a dtype is given. All other
    arguments have no effect: there is one device and one format. Changes in place replace the
    tensor's elements, also those of a parameter, and also by another shape or dtype.

    >>> megengine.Tensor([1.0, 2.0]) + 1
    Tensor([2. 3.], device=xpux:0)
    """

    __slots__ = ("_name",)
    _name: str
    writes_through: ClassVar[bool] = False

    def __init__(
        self,
        data: Any,
        dtype: Any = None,
        device: Any = None,
        is_const: bool = False,
        no_cache: bool = False,
        name: str | None = None,
        format: str = "default",
    ) -> None:
        if isinstance(data, Node):
            super().__init__(data)
            return
        check_device(device)
        super().__init__(_build_leaf(data, dtype))
        self._name = name or ""

    @property
    def name(self) -> str:
        """Name that the tensor was given."""
        return getattr(self, "_name", "")

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name or ""

    def item(self, *index: Any) -> Any:
        """The only element, or that at an index, as a Python number."""
        return self[index].item() if index else super().item()

    # In place.

    def _reset(self, other: Any) -> None:
        """Take the elements, shape and dtype of `other`, also its derivative unless trained."""
        self._show(other if isinstance(other, _Tensor) else Tensor(other, self.dtype))

    def set_value(self, value: Any) -> None:
        """Set all elements: the former name of `x[...] = value`."""
        self._reset(value)

    def reset_zero(self) -> Self:
        """Zeros from now on."""
        self._reset(np.zeros(self.shape, self.dtype))
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        with self._without_history():
            super().__setitem__(index, value)

    def _without_history(self) -> Any:
        """Change a parameter as MegEngine does: outside of managers nothing is recorded."""
        return no_grad() if self.requires_grad and self.is_leaf else nullcontext()

    def _show(self, value: _Tensor, augmented: bool = False) -> Any:
        if value.type == self.type:
            with self._without_history():
                return change(self, value, augmented=augmented)
        is_trained = self.requires_grad and self.is_leaf
        self.show(array_node(value.numpy(), True) if is_trained else value.node)
        return self

    def __repr__(self) -> str:
        with np.printoptions(precision=4, suppress=False):
            text = str(self._array())
        dtype = "" if self.dtype == FLOAT32 else f", dtype={self.dtype}"
        return f"{type(self).__name__}({text}{dtype}, device={self.device})"


stand_ins[Tensor] = Variable


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def change_by(self: Tensor, other: Any) -> Any:
        return self._show(function(self, other), augmented=True)

    return change_by


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(Tensor, f"__i{_name}__", _in_place(getattr(operator, _name)))
for _name in ("and_", "or_", "xor"):
    setattr(Tensor, f"__i{_name.rstrip('_')}__", _in_place(getattr(operator, _name)))


@final
class Parameter(Tensor):
    """A tensor that is trained: optimizers and modules take it, and derivatives go through it.

    >>> w = megengine.Parameter([1.0, 2.0])
    >>> with megengine.autodiff.GradManager().attach([w]) as manager:
    ...     _ = manager.backward((w * w).sum())
    ...
    >>> w.grad
    Tensor([2. 4.], device=xpux:0)
    """

    __slots__ = ()
    family = Tensor

    def __init__(self, data: Any, dtype: Any = None, device: Any = None, **options: Any) -> None:
        super().__init__(data, dtype, device, **options)
        self.requires_grad_()


def dtype_of_sum(x: Any) -> DType:
    """Return the dtype of sums and products of elements."""
    if not isinstance(x, Handle):
        raise ArgumentError(f"a tensor has elements, and this is {x!r:.60}")
    return INT32 if x.dtype.kind == "b" else x.dtype


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _without_float64(args: Sequence[Any]) -> Sequence[Any]:
    """Convert arrays of float64 to float32, unless a tensor is of float64."""
    arrays = [isinstance(x, _MAY_BE_FLOAT64) and x.dtype == FLOAT64 for x in args]
    if not any(arrays) or any(isinstance(x, Handle) and x.dtype == FLOAT64 for x in args):
        return args
    pairs = zip(args, arrays, strict=True)
    return [np.asarray(x, FLOAT32) if is_double else x for x, is_double in pairs]


def default_dtype(dtype: DType) -> DType:
    """Return the dtype of tensors that are made from data of `dtype`."""
    return _DTYPES.get(dtype, dtype)


def _build_leaf(data: Any, dtype: Any) -> Node:
    """A leaf of the elements of `data`, which are copied."""
    if isinstance(data, _Tensor):
        data = data.numpy()
        dtype = data.dtype if dtype is None else dtype
    array = array_of(data, None if dtype is None else as_dtype(dtype))
    return array_node(np.array(array, default_dtype(array.dtype) if dtype is None else dtype))


def tensor(
    data: Any,
    dtype: Any = None,
    device: Any = None,
    is_const: bool = False,
    no_cache: bool = False,
    name: str | None = None,
    format: str = "default",
) -> Tensor:
    """Return a tensor with copies of the elements of `data`.

    >>> megengine.tensor([1.0, 2.0])
    Tensor([1. 2.], device=xpux:0)
    """
    return Tensor(data, dtype, device, is_const, no_cache, name, format)
