"""The type of a tensor, which torch's programs also call: `x.type(torch.float32)`."""

from __future__ import annotations

from typing import Any, final

from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.torch import framework
from primgraph.ir.types import TensorType, as_dtype

# Names of classes of tensors, by dtype.
NAMES = {
    "BoolTensor": framework.bool,
    "ByteTensor": framework.uint8,
    "CharTensor": framework.int8,
    "DoubleTensor": framework.float64,
    "FloatTensor": framework.float32,
    "HalfTensor": framework.float16,
    "IntTensor": framework.int32,
    "LongTensor": framework.int64,
    "ShortTensor": framework.int16,
    "ComplexFloatTensor": framework.complex64,
    "ComplexDoubleTensor": framework.complex128,
}
_OF_DTYPE = {dtype: name for name, dtype in NAMES.items()}
_FIELDS = ("shape", "dtype", "ndim", "size", "nbytes", "names")
_set = object.__setattr__


@final
class CallableType(TensorType):  # type: ignore[misc]
    """Type of a tensor, equal to that of others, which is called for its name or to convert it."""

    __slots__ = ("_owner", "_plain")

    _owner: Any
    _plain: TensorType

    def __new__(cls, tensor: Any, plain: TensorType) -> CallableType:
        made = object.__new__(cls)
        for name in _FIELDS:
            _set(made, name, getattr(plain, name))
        _set(made, "_owner", tensor)
        _set(made, "_plain", plain)
        return made

    def __call__(self, dtype: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        """Return the name of the class of such tensors, or the tensor in another dtype."""
        if dtype is None:
            return f"torch.{_OF_DTYPE[LibraryDType('torch', self.dtype)]}"
        if isinstance(dtype, str):
            dtype = NAMES.get(dtype.removeprefix("torch."), dtype)
        found = getattr(dtype, "dtype", dtype)
        return self._owner._astype(as_dtype(found))

    def __eq__(self, other: object) -> bool:
        other = getattr(other, "_plain", other)
        return self._plain is other

    def __hash__(self) -> int:
        return hash(self._plain)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._plain.__reduce__()
