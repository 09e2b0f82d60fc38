"""Creation of tensors from sizes and from data, as in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from types import MappingProxyType
from typing import Any, Generic, TypeVar, final

import numpy as np

from primgraph.compat.torch.framework import checked_device, dtype_or_default
from primgraph.compat.torch.functions.results import store_result
from primgraph.compat.torch.randomness import RandomCreators as RandomCreators
from primgraph.compat.torch.randomness import draw as draw
from primgraph.compat.torch.tensor import Tensor, make_leaf
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import as_dtype, as_shape

T = TypeVar("T", bound=Tensor)


# Options that have no effect on tensors in the processor's memory, and `out`.
_ACCEPTED = frozenset(("generator", "layout", "memory_format", "names", "out", "pin_memory"))


class _Maker(Generic[T]):
    """Maker of tensors of one class."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind

    def _create(
        self,
        data: Any,
        dtype: Any,
        device: Any,
        requires_grad: bool,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> T:
        checked_device(device)
        if options:
            unknown = options.keys() - _ACCEPTED
            if unknown:
                raise ArgumentError(f"there is no argument {min(unknown)!r:.60} of this function")
        found = self._kind(make_leaf(data, dtype, requires_grad))
        out = options.get("out")
        return found if out is None else store_result(out, found)


@final
class Creators(_Maker[T]):
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

    def arange(
        self,
        start: float,
        end: float | None = None,
        step: float = 1,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return numbers from `start` (0 without an `end`) up to but excluding `end`, `step` apart.

        >>> torch.arange(1, 7, 2)
        tensor([1, 3, 5])
        """
        first, last = (0, start) if end is None else (start, end)
        if step == 0 or (last - first) * step < 0:
            raise ArgumentError(
                f"upper bound and lower bound inconsistent with step sign: arange from {first} to "
                f"{last} by {step}"
            )
        array = np.arange(first, last, step)
        wanted = dtype_or_default(dtype) if dtype or array.dtype.kind == "f" else np.int64
        return self._create(array, wanted, device, requires_grad, options)

    def linspace(
        self,
        start: float,
        end: float,
        steps: int,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return `steps` evenly spaced numbers from `start` to `end`.

        >>> torch.linspace(0.0, 1.0, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
        """
        if steps < 0:
            raise ArgumentError(f"number of steps must be non-negative, not {steps}")
        array = np.linspace(float(start), float(end), steps)
        return self._create(array, dtype_or_default(dtype), device, requires_grad, options)

    def logspace(
        self,
        start: float,
        end: float,
        steps: int,
        base: float = 10.0,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return `steps` powers of `base`, with evenly spaced exponents from `start` to `end`.

        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
        """
        array = np.logspace(float(start), float(end), steps, base=base)
        return self._create(array, dtype_or_default(dtype), device, requires_grad, options)

    def tril_indices(self, row: int, col: int, offset: int = 0, **options: Any) -> T:
        """Return the rows and columns of the elements on and below a diagonal of a matrix.

        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
        """
        return self.tensor(np.stack(np.tril_indices(row, offset, col)), **options)

    def triu_indices(self, row: int, col: int, offset: int = 0, **options: Any) -> T:
        """Return the rows and columns of the elements on and above a diagonal of a matrix.

        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
        """
        return self.tensor(np.stack(np.triu_indices(row, offset, col)), **options)

    def range(self, start: float, end: float, step: float = 1, **options: Any) -> T:
        """Return numbers from `start` up to and including `end`, as floats.

        >>> torch.range(1, 3)
        tensor([1., 2., 3.])
        """
        count = int(np.floor((end - start) / step + 1e-9)) + 1
        dtype = dtype_or_default(options.pop("dtype", None))
        return self.tensor(start + step * np.arange(count), dtype=dtype, **options)

    def empty_strided(self, size: Any, stride: Any, *, dtype: Any = None, **options: Any) -> T:
        """Return zeros of a shape; the steps in memory are those of all tensors.

        >>> torch.empty_strided((2, 3), (3, 1)).shape
        torch.Size([2, 3])
        """
        return self.zeros(size, dtype=dtype, **options)

    def eye(
        self,
        n: int,
        m: int | None = None,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        """Return a matrix with ones on the diagonal, of `n` rows and `m` columns.

        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
        """
        if n < 0 or (m or 0) < 0:
            raise ArgumentError(f"eye takes sizes from 0 on, not {n} and {m}")
        return self._create(np.eye(n, m), dtype_or_default(dtype), device, requires_grad, options)

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
    """Extents that are given one by one, as one sequence, or by name."""
    if size is not None:
        sizes = [size]
    if len(sizes) == 1 and isinstance(sizes[0], list | tuple):
        sizes = sizes[0]
    return as_shape([index(n) for n in sizes])


create = Creators(Tensor)
