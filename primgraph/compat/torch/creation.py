"""Creation of tensors from sizes and from data, as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, final

import numpy as np

from primgraph.compat.torch.framework import checked_device, dtype_or_default
from primgraph.compat.torch.randomness import RandomCreators as RandomCreators
from primgraph.compat.torch.randomness import draw as draw
from primgraph.compat.torch.tensor import Tensor, make_leaf
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.ir.types import as_dtype, as_shape

T = TypeVar("T", bound=Tensor)


class _Maker(Generic[T]):
    """Maker of tensors of one class."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    def _create(self, data: Any, dtype: Any, device: Any, requires_grad: bool) -> T:
        checked_device(device)
        return self._kind(make_leaf(data, dtype, requires_grad))


@final
class Creators(_Maker[T]):
    """Functions that make tensors of given elements.

    Sizes are given one by one, as a sequence, or as `size=`.
    """

    def tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Return a tensor with copies of the elements of `data`.

        >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        tensor([[1., 2.],
                [3., 4.]])
        """
        return self._create(data, dtype, device, requires_grad)

    def as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> T:
        """Return `data` if it is such a tensor already, or else a tensor with a copy of it.

        >>> torch.as_tensor([1.0, 2.0])
        tensor([1., 2.])
        """
        if isinstance(data, self._kind) and (dtype is None or data.dtype == as_dtype(dtype)):
            return data
        return self._create(data, dtype, device, False)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> T:
        """Return a tensor with copies of the elements of an array: it does not share memory.

        >>> torch.from_numpy(np.array([1.0, 2.0]))
        tensor([1., 2.], dtype=torch.float64)
        """
        return self._create(array, None, None, False)

    def full(
        self,
        size: Any,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return a tensor with all elements equal to `fill_value`.

        >>> torch.full((2,), 0.5)
        tensor([0.5, 0.5])
        """
        found = np.asarray(fill_value) if type(fill_value) is not float else None
        wanted = dtype_or_default(dtype) if found is None else dtype
        return self._create(
            np.full(_shape([size]), fill_value, wanted), None, device, requires_grad
        )

    def zeros(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return a tensor of zeros.

        >>> torch.zeros(2, 3)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
        """
        array = np.zeros(_shape(sizes, size), dtype_or_default(dtype))
        return self._create(array, None, device, requires_grad)

    def ones(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return a tensor of ones.

        >>> torch.ones(2, 3)
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
        """
        array = np.ones(_shape(sizes, size), dtype_or_default(dtype))
        return self._create(array, None, device, requires_grad)

    # Memory is never left uninitialized.
    empty = zeros

    def arange(
        self,
        start: float,
        end: float | None = None,
        step: float = 1,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return numbers from `start` (0 without an `end`) up to but excluding `end`, `step` apart.

        >>> torch.arange(1, 7, 2)
        tensor([1, 3, 5])
        """
        first, last = (0, start) if end is None else (start, end)
        array = np.arange(first, last, step)
        wanted = dtype_or_default(dtype) if dtype or array.dtype.kind == "f" else np.int64
        return self._create(array, wanted, device, requires_grad)

    def linspace(
        self,
        start: float,
        end: float,
        steps: int,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return `steps` evenly spaced numbers from `start` to `end`.

        >>> torch.linspace(0.0, 1.0, 5)
        tensor([0.  , 0.25, 0.5 , 0.75, 1.  ])
        """
        array = np.linspace(start, end, steps)
        return self._create(array, dtype_or_default(dtype), device, requires_grad)

    def eye(
        self,
        n: int,
        m: int | None = None,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return a matrix with ones on the diagonal, of `n` rows and `m` columns.

        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
        """
        return self._create(np.eye(n, m), dtype_or_default(dtype), device, requires_grad)

    def zeros_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Return zeros of the shape of `input`, and of its dtype unless `dtype` is given.

        >>> torch.zeros_like(torch.arange(3))
        tensor([0, 0, 0])
        """
        array = np.zeros(input.type.shape, dtype or input.dtype)
        return self._create(array, None, device, requires_grad)

    def ones_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Return ones of the shape of `input`, and of its dtype unless `dtype` is given.

        >>> torch.ones_like(torch.arange(3))
        tensor([1, 1, 1])
        """
        array = np.ones(input.type.shape, dtype or input.dtype)
        return self._create(array, None, device, requires_grad)

    empty_like = zeros_like

    def full_like(
        self,
        input: _Tensor,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Return a tensor like `input`, of its dtype unless one is given, filled with `fill_value`.

        >>> torch.full_like(torch.ones(2), 0.5)
        tensor([0.5, 0.5])
        """
        array = np.full(input.type.shape, fill_value, dtype or input.dtype)
        return self._create(array, None, device, requires_grad)


def _shape(sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Extents that are given one by one, as one sequence, or by name."""
    if size is not None:
        sizes = [size]
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    return as_shape([int(n) for n in sizes])


create = Creators(Tensor)
