"""Dtypes as other libraries name and print them: `torch.float32`, `paddle.float32`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, final

import numpy as np

from primgraph.eager.steps import constant_classes
from primgraph.ir.types import NAME_OF_DTYPE, DType, as_dtype


@final
class LibraryDType:
    """NumPy dtype that a library prints with its own name; equal to NumPy's, as keys of dicts too.

    NumPy and primgraph take it wherever they take a dtype. There is one object for a dtype of a
    library. Other attributes, such as `kind`, are those of the NumPy dtype.

    >>> torch.float32, torch.ones(2, dtype=torch.float64).dtype
    (torch.float32, torch.float64)
    >>> torch.float32 == np.dtype("float32"), torch.float32.itemsize
    (True, 4)
    """

    __slots__ = ("dtype", "library")
    _known: ClassVar[dict[tuple[str, DType], LibraryDType]] = {}

    dtype: DType
    library: str

    def __new__(cls, library: str, dtype: Any) -> Self:
        found: Any = cls._known.get((library, dtype)) if isinstance(dtype, np.dtype) else None
        if found is None:
            key = library, as_dtype(dtype)
            found = super().__new__(cls)
            object.__setattr__(found, "library", library)
            object.__setattr__(found, "dtype", key[1])
            found = cls._known.setdefault(key, found)
        return found  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a dtype is constant: {name!r} cannot be set")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dtype, name)

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are real floats."""
        return self.dtype.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether elements are complex numbers."""
        return self.dtype.kind == "c"

    @property
    def is_signed(self) -> bool:
        """Whether elements can be negative."""
        return self.dtype.kind in "ifc"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LibraryDType):
            return self.dtype == other.dtype
        try:
            return bool(self.dtype == other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"{self.library}.{self.dtype}"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return LibraryDType, (self.library, str(self.dtype))


constant_classes.add(LibraryDType)


def dtypes_of(library: str) -> dict[str, LibraryDType]:
    """Return the dtypes of a library by NumPy's names.

    >>> from primgraph.compat.dtypes import dtypes_of
    >>> dtypes_of("torch")["int64"]
    torch.int64
    """
    return {str(dtype): LibraryDType(library, dtype) for dtype in NAME_OF_DTYPE}
