"""Creation of tensors of numbers in order, and of the options of all that create tensors."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from primgraph.compat.torch.framework import checked_device, dtype_or_default
from primgraph.compat.torch.functions.results import store_result
from primgraph.compat.torch.tensor import Tensor, make_leaf
from primgraph.errors import ArgumentError

T = TypeVar("T", bound=Tensor)

# Options that have no effect on tensors in the processor's memory, and `out`.
_ACCEPTED = frozenset(("generator", "layout", "memory_format", "names", "out", "pin_memory"))


class Maker(Generic[T]):
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


class RangeCreators(Maker[T]):
    """Functions that make tensors of numbers in order, and of positions."""

    def _made(
        self,
        array: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **options: Any,
    ) -> T:
        return self._create(array, dtype, device, requires_grad, options)

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
        return self._made(np.stack(np.tril_indices(row, offset, col)), **options)

    def triu_indices(self, row: int, col: int, offset: int = 0, **options: Any) -> T:
        """Return the rows and columns of the elements on and above a diagonal of a matrix.

        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
        """
        return self._made(np.stack(np.triu_indices(row, offset, col)), **options)

    def range(self, start: float, end: float, step: float = 1, **options: Any) -> T:
        """Return numbers from `start` up to and including `end`, as floats.

        >>> torch.range(1, 3)
        tensor([1., 2., 3.])
        """
        count = int(np.floor((end - start) / step + 1e-9)) + 1
        dtype = dtype_or_default(options.pop("dtype", None))
        return self._made(start + step * np.arange(count), dtype=dtype, **options)

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
