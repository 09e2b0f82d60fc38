"""Creation of tensors from sizes and from data, as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, TypeVar, final

import numpy as np

from primgraph.compat.torch.core.ranges import RangeCreators
from primgraph.compat.torch.framework import dtype_or_default
from primgraph.compat.torch.randomness import RandomCreators as RandomCreators
from primgraph.compat.torch.randomness import draw as draw
from primgraph.compat.torch.tensor import Tensor
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype, as_shape

T = TypeVar("T", bound=Tensor)


@final
class Creators(RangeCreators[T]):
    """Functions that make tensors of given elements.

    Sizes are given one by one, as a sequence, or as `size=`.
    """

    def tensor(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a tensor with copies of the elements of `data`.

        >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        tensor([[1., 2.],
                [3., 4.]])
        """
        return self._create(data, dtype, device, requires_grad, options)

    def scalar_tensor(self, s: Any, *, dtype: Any = None, **options: Any) -> T:
        """Return a tensor without axes, of the default dtype.

        >>> torch.scalar_tensor(2.0)
        tensor(2.)
        """
        return self.tensor(s, dtype=dtype_or_default(dtype), **options)

    def asarray(
        self,
        obj: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        requires_grad: bool = False,
    ) -> T:
        """Return `obj` as a tensor: itself if it is one already, unless `copy`.

        >>> torch.asarray([1.0, 2.0])
        tensor([1., 2.])
        """
        is_own = isinstance(obj, self._kind) and (dtype is None or obj.dtype == as_dtype(dtype))
        if is_own and not copy:
            return obj.detach().requires_grad_() if requires_grad else obj  # type: ignore[no-any-return]
        return self._create(obj, dtype, device, requires_grad)

    def as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> T:
        """Return `data` if it is such a tensor already, or else a tensor with a copy of it.

        >>> torch.as_tensor([1.0, 2.0])
        tensor([1., 2.])
        """
        if isinstance(data, self._kind) and (dtype is None or data.dtype == as_dtype(dtype)):
            return data
        if isinstance(data, self._kind):
            return data.to(dtype)
        return self._create(data, dtype, device, False)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> T:
        """Return a tensor with copies of the elements of an array: it does not share memory.

        >>> torch.from_numpy(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=torch.float64)
        """
        if not isinstance(array, np.ndarray):
            raise ArgumentError(f"expected np.ndarray (got {type(array).__name__})")
        return self._create(array, None, None, False)

    def frombuffer(
        self,
        buffer: Any,
        *,
        dtype: Any,
        count: int = -1,
        offset: int = 0,
        requires_grad: bool = False,
    ) -> T:
        """Return a tensor with copies of the elements in a buffer of bytes.

        >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16)
        """
        array = np.frombuffer(buffer, as_dtype(dtype), count, offset)
        return self._create(array, None, None, requires_grad)

    def full(
        self,
        size: Any,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a tensor with all elements equal to `fill_value`.

        >>> torch.full((2,), 0.5)
        tensor([0.5000, 0.5000])
        """
        found = np.asarray(fill_value) if type(fill_value) is not float else None
        wanted = dtype_or_default(dtype) if found is None else dtype
        array = np.full(_shape([size]), fill_value, wanted)
        return self._create(array, None, device, requires_grad, options)

    def zeros(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a tensor of zeros.

        >>> torch.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
        """
        array = np.zeros(_shape(sizes, size), dtype_or_default(dtype))
        return self._create(array, None, device, requires_grad, options)

    def ones(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a tensor of ones.

        >>> torch.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
        """
        array = np.ones(_shape(sizes, size), dtype_or_default(dtype))
        return self._create(array, None, device, requires_grad, options)

    # Memory is never left uninitialized.
    empty = zeros

    def empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> T:
        """Return zeros of a shape; the steps in memory are those of all tensors.

        >>> torch.empty_strided((2, 3), (3, 1)).shape
        torch.Size([2, 3])
        """
        return self.zeros(size, dtype=dtype, **options)

    def zeros_like(
        self,
        input: _Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return zeros of the shape of `input`, and of its dtype unless `dtype` is given.

        >>> torch.zeros_like(torch.arange(3))
        tensor([0, 0, 0])
        """
        array = np.zeros(input.type.shape, dtype or input.dtype)
        return self._create(array, None, device, requires_grad, options)

    def ones_like(
        self,
        input: _Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return ones of the shape of `input`, and of its dtype unless `dtype` is given.

        >>> torch.ones_like(torch.arange(3))
        tensor([1, 1, 1])
        """
        array = np.ones(input.type.shape, dtype or input.dtype)
        return self._create(array, None, device, requires_grad, options)

    empty_like = zeros_like

    def full_like(
        self,
        input: _Tensor,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a tensor like `input`, of its dtype unless one is given, filled with `fill_value`.

        >>> torch.full_like(torch.ones(2), 0.5)
        tensor([0.5000, 0.5000])
        """
        array = np.full(input.type.shape, fill_value, dtype or input.dtype)
        return self._create(array, None, device, requires_grad, options)


def _shape(sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Return extents that are given one by one, as one sequence, or by name."""
    if size is None and not sizes:
        raise ArgumentError("missing 1 required positional argument: 'size'", hint="size=() is one")
    if size is not None:
        sizes = [size]
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    return as_shape([index(n) for n in sizes])


create = Creators(Tensor)
