"""How tensors are made from nothing, or from what is no tensor, as in torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, final

import numpy as np

from primgraph.compat.torch.framework import checked_device, dtype_or_default
from primgraph.compat.torch.tensor import Tensor, made
from primgraph.eager.seeds import reserved
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype, as_shape

T = TypeVar("T", bound=Tensor)


@final
class Creators(Generic[T]):
    """The functions that make tensors of one class.

    Sizes are given one by one, as a sequence, or as `size=`. Random numbers follow from `pg.seed`.
    """

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    def _draw(self) -> np.random.Generator:
        return reserved()()

    def _of(self, data: Any, dtype: Any, device: Any, requires_grad: bool) -> T:
        checked_device(device)
        return self._kind(made(data, dtype, requires_grad))

    def tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """A tensor of the elements of `data`, which are copied."""
        return self._of(data, dtype, device, requires_grad)

    def as_tensor(self, data: Any, dtype: Any = None, device: Any = None) -> T:
        """`data` itself, if it is such a tensor already, or else one of its elements, copied."""
        if isinstance(data, self._kind) and (dtype is None or data.dtype == as_dtype(dtype)):
            return data
        return self._of(data, dtype, device, False)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> T:
        """A tensor of the elements of an array, which are copied: it never changes with it."""
        return self._of(array, None, None, False)

    def full(
        self,
        size: Any,
        fill_value: float,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """`fill_value` at every place."""
        found = np.asarray(fill_value) if type(fill_value) is not float else None
        wanted = dtype_or_default(dtype) if found is None else dtype
        return self._of(np.full(_shape([size]), fill_value, wanted), None, device, requires_grad)

    def zeros(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Zeros."""
        array = np.zeros(_shape(sizes, size), dtype_or_default(dtype))
        return self._of(array, None, device, requires_grad)

    def ones(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Ones."""
        array = np.ones(_shape(sizes, size), dtype_or_default(dtype))
        return self._of(array, None, device, requires_grad)

    # What stands in memory that nobody has set is not told: zeros are.
    empty = zeros

    def rand(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Uniform numbers between 0 and 1."""
        array = self._draw().random(_shape(sizes, size))
        return self._of(array, dtype_or_default(dtype), device, requires_grad)

    def randn(
        self,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Normal numbers of mean 0 and variance 1."""
        array = self._draw().standard_normal(_shape(sizes, size))
        return self._of(array, dtype_or_default(dtype), device, requires_grad)

    def randint(
        self,
        *bounds: Any,
        low: int = 0,
        high: int | None = None,
        size: Any = (),
        dtype: Any = np.int64,
    ) -> T:
        """Integers from `low` up to but without `high`: `randint(high, size)` has `low` 0."""
        given = list(bounds)
        if given and not isinstance(given[-1], int):
            size = given.pop()
        if high is None:
            high = given.pop()
        first = given.pop() if given else low
        if first >= high:
            raise ArgumentError(f"randint draws from {first} up to but without {high}: from none")
        return self._of(self._draw().integers(first, high, size), dtype, None, False)

    def randperm(self, n: int) -> T:
        """The integers below `n` in random order."""
        return self._of(self._draw().permutation(n), np.int64, None, False)

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
        """Numbers from `start` (0 if there is no `end`) up to but without `end`, `step` apart."""
        first, last = (0, start) if end is None else (start, end)
        array = np.arange(first, last, step)
        wanted = dtype_or_default(dtype) if dtype or array.dtype.kind == "f" else np.int64
        return self._of(array, wanted, device, requires_grad)

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
        """So many numbers from `start` to `end`, evenly spaced."""
        array = np.linspace(start, end, steps)
        return self._of(array, dtype_or_default(dtype), device, requires_grad)

    def eye(
        self,
        n: int,
        m: int | None = None,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
    ) -> T:
        """Ones on the diagonal of `n` rows and `m` columns, zeros elsewhere."""
        return self._of(np.eye(n, m), dtype_or_default(dtype), device, requires_grad)

    def zeros_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Zeros of the shape of `input`, and of its dtype unless `dtype` is given."""
        array = np.zeros(input.type.shape, dtype or input.dtype)
        return self._of(array, None, device, requires_grad)

    def ones_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Ones of the shape of `input`, and of its dtype unless `dtype` is given."""
        array = np.ones(input.type.shape, dtype or input.dtype)
        return self._of(array, None, device, requires_grad)

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
        """`fill_value` at every place of the shape of `input`, in its dtype unless one is given."""
        array = np.full(input.type.shape, fill_value, dtype or input.dtype)
        return self._of(array, None, device, requires_grad)

    def rand_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Uniform numbers between 0 and 1 of the shape of `input`."""
        array = self._draw().random(input.type.shape)
        return self._of(array, dtype or input.dtype, device, requires_grad)

    def randn_like(
        self, input: _Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> T:
        """Normal numbers of the shape of `input`."""
        array = self._draw().standard_normal(input.type.shape)
        return self._of(array, dtype or input.dtype, device, requires_grad)


def _shape(sizes: Sequence[Any], size: Any = None) -> tuple[int, ...]:
    """Extents that are given one by one, as one sequence, or by name."""
    if size is not None:
        sizes = [size]
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    return as_shape([int(n) for n in sizes])


create = Creators(Tensor)
