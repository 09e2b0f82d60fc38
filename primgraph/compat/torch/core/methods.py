"""Torch's methods and attributes of all arrays: of tensors, and of variables of programs."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from primgraph.compat.absent import reason_for
from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.torch import framework, functions
from primgraph.compat.torch.core.operators import Operators
from primgraph.eager.inplace.views import View
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import (
    ShapeError,
    unknown_name,
)
from primgraph.ir.types import DType, Shape, as_axis, as_dtype
from primgraph.operators import astype
from primgraph.operators.handle import Handle

# Functions whose first argument is no tensor that they are about; all others are methods, too.
_NO_METHODS = """
atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors bucketize can_cast
cartesian_prod cat chain_matmul column_stack complex concat concatenate dstack einsum hstack imag
is_tensor meshgrid pdist polar polygamma promote_types real result_type row_stack searchsorted stack
tensordot trapezoid trapz vander view_as_complex view_as_real vstack where combinations
"""


class Sizes(tuple[int, ...]):
    """A shape."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements of an array of this shape."""
        return int(np.prod(self, dtype=np.int64))

    def __add__(self, other: Any) -> Sizes:
        return Sizes((*self, *other))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Sizes(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class _Count(int):
    """The number of elements, which gives the shape, or an extent, where it is called."""

    _shape: Shape

    def __new__(cls, count: int, shape: Shape) -> _Count:
        made = super().__new__(cls, count)
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        shape = self._shape
        return Sizes(shape) if dim is None else shape[as_axis(dim, len(shape))]


def _cast_to(dtype: LibraryDType) -> Callable[..., Any]:
    def method(self: TensorMethods, memory_format: Any = None) -> Any:
        return self._astype(dtype.dtype)

    method.__doc__ = f"Convert to {dtype.dtype}."
    return method


class TensorMethods(Operators):
    """Torch's methods and their arguments, for whatever has elements, here or in a program."""

    __slots__ = ()
    _library: ClassVar[str] = "torch"

    # Attributes of tensors of other kinds or in other places than these.
    is_cpu = True
    is_cuda = is_sparse = is_quantized = is_meta = is_mps = is_xpu = is_nested = is_mkldnn = False
    names = None
    output_nr = 0

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_name(self._called, name, dir(type(self)), reason_for(name))

    @property
    def shape(self) -> Sizes:
        """Extent along each axis."""
        return Sizes(self.type.shape)

    @property
    def dtype(self) -> Any:
        """The library's dtype of the elements."""
        return LibraryDType(self._library, self.type.dtype)

    @property
    def size(self) -> _Count:
        """`x.size()` is the shape, and `x.size(dim)` one extent."""
        return _Count(self.type.size, self.type.shape)

    @property
    def device(self) -> framework.device:
        """The processor."""
        return framework.device()

    def get_device(self) -> builtins.int:
        """Return -1, the number of the processor."""
        return -1

    @property
    def layout(self) -> str:
        """Layout of the elements: they are strided."""
        return "torch.strided"

    @property
    def itemsize(self) -> builtins.int:
        """Number of bytes of an element."""
        return self.type.dtype.itemsize

    def element_size(self) -> builtins.int:
        """Return the number of bytes of an element."""
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> builtins.int:
        """Number of bytes of all elements."""
        return self.type.nbytes

    @property
    def mT(self) -> Self:
        """The last two axes exchanged. Raises `ShapeError` for a vector."""
        if self.ndim < 2:
            raise ShapeError(f"tensor.mT is only supported on matrices, not on {self.type}")
        found: Self = functions.transpose(self, -1, -2)
        return found

    @property
    def mH(self) -> Self:
        """The last two axes exchanged, and complex numbers conjugated."""
        found: Self = functions.conj(self.mT)
        return found

    @property
    def H(self) -> Self:
        """Conjugate transpose of a matrix. Raises `ShapeError` for other numbers of axes."""
        if self.ndim not in (0, 2):
            raise ShapeError(f"tensor.H is only supported on matrices, not on {self.type}")
        found: Self = functions.conj(functions.t(self))
        return found

    def dim(self) -> builtins.int:
        """Number of axes."""
        return len(self.type.shape)

    ndimension = dim

    def nelement(self) -> builtins.int:
        """Number of elements."""
        return self.type.size

    # Conversions.

    def _astype(self, dtype: DType) -> Self:
        if self.type.dtype == dtype:
            return self
        found: Self = astype(self, dtype)  # type: ignore[assignment]
        return found

    def to(
        self,
        *targets: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        memory_format: Any = None,
        other: Any = None,
    ) -> Self:
        """Convert to another dtype, given as such or by a tensor of it; a device is the processor.

        With `copy` the result shares no elements.
        """
        for target in (*targets, other):
            if isinstance(target, Handle):
                dtype = target.dtype
            elif isinstance(target, LibraryDType | np.dtype):
                dtype = target
            elif not isinstance(target, builtins.bool):
                framework.checked_device(target)
        framework.checked_device(device)
        found = self if dtype is None else self._astype(as_dtype(dtype))
        return functions.clone(self) if copy and found is self else found

    def type_as(self, other: _Tensor) -> Self:
        """In the dtype of another."""
        return self._astype(other.type.dtype)

    float = _cast_to(framework.float32)
    double = _cast_to(framework.float64)
    half = _cast_to(framework.float16)
    int = _cast_to(framework.int32)
    long = _cast_to(framework.int64)
    short = _cast_to(framework.int16)
    char = _cast_to(framework.int8)
    byte = _cast_to(framework.uint8)
    bool = _cast_to(framework.bool)
    cfloat = _cast_to(framework.complex64)
    cdouble = _cast_to(framework.complex128)

    def cpu(self, memory_format: Any = None) -> Self:
        """Itself, as there is no other place."""
        return self

    def cuda(self, *device: Any, **options: Any) -> NoReturn:
        """Raise `OptionError`: tensors are in the processor's memory."""
        framework.checked_device("cuda")
        raise AssertionError

    def pin_memory(self, device: Any = None) -> Self:
        """Return itself: there is no other device to copy to."""
        return self

    def is_pinned(self) -> builtins.bool:
        """Return False."""
        return False

    def share_memory_(self) -> Self:
        """Return itself."""
        return self

    def is_shared(self) -> builtins.bool:
        """Return False."""
        return False

    def contiguous(self, memory_format: Any = None) -> Self:
        """Return itself, or a copy of a view whose elements lie in another order."""
        return self if self.is_contiguous() else functions.clone(self)

    def is_contiguous(self, memory_format: Any = None) -> builtins.bool:
        """Return whether the elements lie in memory in the order of their positions."""
        alias = getattr(self, "_alias", None)
        return not isinstance(alias, View) or alias.is_contiguous

    def stride(self, dim: builtins.int | None = None) -> Any:
        """Return the steps between elements along each axis, or along one, in elements."""
        steps = self._geometry()[1]
        return steps if dim is None else steps[as_axis(dim, self.ndim)]

    def storage_offset(self) -> builtins.int:
        """Return the position of the first element among those that it shares."""
        return self._geometry()[0]

    def _geometry(self) -> tuple[builtins.int, tuple[builtins.int, ...]]:
        alias = getattr(self, "_alias", None)
        found = alias.geometry() if isinstance(alias, View) else None
        if found is None:
            shape = self.type.shape
            return 0, tuple(prod(n or 1 for n in shape[i + 1 :]) for i in range(len(shape)))
        return found

    def where(self, condition: Any, other: Any) -> Self:
        """Return the elements where the condition is true, and those of `other` elsewhere."""
        found: Self = functions.where(condition, self, other)
        return found

    def polygamma(self, n: builtins.int) -> Self:
        """Return the derivative of order `n` of the digamma function."""
        found: Self = functions.polygamma(n, self)
        return found

    def sum_to_size(self, *size: Any) -> Self:
        """Return sums over the axes along which `size` is broadcast to the shape."""
        wanted = tuple(functions.shapes.collect_varargs(size))
        lead = self.ndim - len(wanted)
        axes = [i + lead for i, n in enumerate(wanted) if n == 1 and self.shape[i + lead] != 1]
        over = (*range(lead), *axes)
        found: Self = functions.sum(self, over, keepdim=True) if over else self
        return functions.reshape(found, wanted)  # type: ignore[no-any-return]


for _name in functions.__all__:
    if _name not in _NO_METHODS.split():
        setattr(TensorMethods, _name, getattr(functions, _name))
