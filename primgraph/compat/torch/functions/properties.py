"""Dtypes and sizes: questions about tensors, and the dtypes in which they meet."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.promotion import common_dtype, pair_dtype
from primgraph.compat.torch import framework
from primgraph.errors import DTypeError
from primgraph.ir.types import as_dtype
from primgraph.operators.handle import Handle

__all__ = [
    "can_cast",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_tensor",
    "numel",
    "promote_types",
    "result_type",
]


def is_complex(input: Any) -> builtins.bool:
    """Return whether the elements are complex.

    >>> torch.is_complex(torch.ones(2))
    False
    """
    return bool(input.dtype.kind == "c")


def is_floating_point(input: Any) -> builtins.bool:
    """Return whether the elements are real floats.

    >>> torch.is_floating_point(torch.ones(2))
    True
    """
    return bool(input.dtype.kind == "f")


def is_signed(input: Any) -> builtins.bool:
    """Return whether elements can be negative.

    >>> torch.ones(2).is_signed()
    True
    """
    return bool(input.dtype.kind in "ifc")


def is_conj(input: Any) -> builtins.bool:
    """Return False: conjugates are computed at once here.

    >>> torch.is_conj(torch.ones(2))
    False
    """
    return False


def is_neg(input: Any) -> builtins.bool:
    """Return False: signs are changed at once here.

    >>> torch.is_neg(torch.ones(2))
    False
    """
    return False


def is_inference(input: Any) -> builtins.bool:
    """Return False: tensors that are made in inference mode are usual ones here.

    >>> torch.is_inference(torch.ones(2))
    False
    """
    return False


def is_nonzero(input: Any) -> builtins.bool:
    """Return whether the only element differs from zero.

    >>> torch.is_nonzero(torch.tensor(1.0))
    True
    """
    return bool(input)


def is_same_size(input: Any, other: Any) -> builtins.bool:
    """Return whether the shapes are equal.

    >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
    True
    """
    return bool(input.shape == other.shape)


def is_tensor(obj: Any) -> builtins.bool:
    """Return whether `obj` is a tensor.

    >>> torch.is_tensor(torch.ones(2))
    True
    """
    return isinstance(obj, Handle)


def numel(input: Any) -> int:
    """Return the number of elements.

    >>> torch.numel(torch.ones(2, 3))
    6
    """
    return int(input.type.size)


def result_type(tensor1: Any, tensor2: Any) -> Any:
    """Return the dtype in which two tensors or numbers meet.

    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    found = common_dtype([tensor1, tensor2], framework.get_default_dtype().dtype, True)
    return LibraryDType("torch", found)


def promote_types(type1: Any, type2: Any) -> Any:
    """Return the dtype in which tensors of two dtypes meet.

    >>> torch.promote_types(torch.int64, torch.float32)
    torch.float32
    """
    return LibraryDType("torch", pair_dtype(as_dtype(type1), as_dtype(type2)))


def can_cast(from_: Any, to: Any) -> builtins.bool:
    """Return whether results of a dtype may be stored in another: of the same kind or a wider one.

    >>> torch.can_cast(torch.float64, torch.float32), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    order = "bifc"
    kinds = [order.index(as_dtype(d).kind.replace("u", "i")) for d in (from_, to)]
    return kinds[0] <= kinds[1]


@dataclass(frozen=True)
class finfo:
    """Limits of a float dtype, the default one unless it is given.

    >>> torch.finfo(torch.float32).eps
    1.1920928955078125e-07
    """

    type: Any = None

    def __post_init__(self) -> None:
        dtype = framework.dtype_or_default(self.type)
        if dtype.kind not in "fc":
            raise DTypeError(f"torch.finfo() requires a floating point input type, not {dtype}")
        object.__setattr__(self, "type", dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "dtype":
            return str(np.finfo(self.type).dtype)
        if name not in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution"):
            raise AttributeError(f"torch.finfo has no attribute {name!r}")
        return getattr(np.finfo(self.type), name).__float__() if name != "bits" else self._bits

    @property
    def _bits(self) -> int:
        return np.finfo(self.type).bits

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{n}={getattr(self, n):g}" for n in names)
        return f"finfo({shown}, dtype={self.dtype})"


@dataclass(frozen=True)
class iinfo:
    """Limits of an integer dtype.

    >>> torch.iinfo(torch.int32).max
    2147483647
    """

    type: Any

    def __post_init__(self) -> None:
        if as_dtype(self.type).kind not in "iu":
            raise DTypeError(f"torch.iinfo() requires an integer input type, not {self.type}")

    def __getattr__(self, name: str) -> Any:
        found = np.iinfo(as_dtype(self.type))
        if name == "dtype":
            return str(found.dtype)
        if name not in ("bits", "max", "min"):
            raise AttributeError(f"torch.iinfo has no attribute {name!r}")
        return int(getattr(found, name))

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
