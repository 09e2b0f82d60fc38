"""Leaves of given elements, and methods that make other tensors of the dtype of one."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from primgraph.compat.torch import framework
from primgraph.compat.torch.core.methods import Sizes
from primgraph.compat.torch.functions.shapes import collect_varargs
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, DTypeError
from primgraph.ir.types import as_dtype, as_shape, complex_dtype
from primgraph.operators.promotion import array_of


class NewTensors(_Tensor):
    """Methods that make other tensors of the dtype of this one."""

    __slots__ = ()

    def _new(self, array: Any, dtype: Any, device: Any, requires_grad: builtins.bool) -> _Tensor:
        framework.checked_device(device)
        wanted = self.type.dtype if dtype is None else as_dtype(dtype)
        return self.family(make_leaf(np.asarray(array), wanted, requires_grad))

    def new_full(
        self,
        size: Any,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> _Tensor:
        """Return a tensor of one number, of the dtype of this one unless `dtype` is given."""
        return self._new(np.full(as_shape(size), fill_value), dtype, device, requires_grad)

    def new_zeros(self, *size: Any, dtype: Any = None, **options: Any) -> _Tensor:
        """Return zeros, of the dtype of this tensor unless `dtype` is given."""
        return self.new_full(collect_varargs(size), 0, dtype=dtype, **options)

    new_empty = new_zeros

    def new_ones(self, *size: Any, dtype: Any = None, **options: Any) -> _Tensor:
        """Return ones, of the dtype of this tensor unless `dtype` is given."""
        return self.new_full(collect_varargs(size), 1, dtype=dtype, **options)

    def new(self, *data: Any) -> _Tensor:
        """Return zeros of a shape, or a copy of data, of the dtype of this tensor."""
        return self.family(make_sized_leaf(data, self.type.dtype))

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> _Tensor:
        """Return a copy of `data`, of the dtype of this tensor unless `dtype` is given."""
        return self._new(data, dtype, device, requires_grad)


def make_sized_leaf(given: tuple[Any, ...], dtype: Any) -> Node:
    """A leaf of zeros of a shape, given as integers or `torch.Size`, or of the elements of data."""
    is_shape = all(isinstance(n, int | np.integer) for n in given)
    data = given if is_shape else given[0]
    if is_shape or isinstance(data, Sizes):
        data = np.zeros(tuple(data) if given else 0)
    return make_leaf(data, dtype, False)


def make_leaf(data: Any, dtype: Any, requires_grad: builtins.bool) -> Node:
    """A leaf of the elements of `data`, copied; Python floats are of the default dtype."""
    if isinstance(data, Node):
        return data
    if isinstance(data, _Tensor):
        data = data._array()
    array = array_of(data, None if dtype is None else framework.dtype_or_default(dtype))
    if requires_grad and array.dtype.kind not in "fc":
        raise DTypeError(
            f"only floats have derivatives, and this tensor is of {array.dtype}",
            hint="give a float dtype, or leave out requires_grad",
        )
    first = data
    while isinstance(first, list | tuple) and first:
        first = first[0]
    if isinstance(first, _Tensor) and first.type.size != 1:
        raise ArgumentError(
            "only one element tensors can be converted to Python scalars",
            hint="torch.stack([x, y]) joins tensors along a new axis",
        )
    if dtype is None and isinstance(first, _Tensor):
        array = array.astype(first.type.dtype)
    elif dtype is None and not isinstance(first, np.ndarray | np.generic):
        if array.dtype.kind == "f":
            array = array.astype(framework.dtype_or_default(None))
        elif array.dtype.kind == "c":
            array = array.astype(complex_dtype(framework.dtype_or_default(None)))
    return array_node(np.array(array), requires_grad)
