"""Addresses of LAPACK functions, and of some of BLAS, for native code.

They are in NumPy's bundled or linked libraries. Otherwise they are taken from SciPy, which is
imported only for this.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, final

from primgraph.codegen.runtime.blas import address_of, libraries, library_at, library_functions

# In the order in which native code expects them.
NAMES = (
    *("potrf", "getrf", "trsm", "symm", "trsv", "gemm"),
    *("geqrf", "orgqr", "syevd", "gesdd", "syr2k"),
)
_OF_BLAS = ("trsm", "symm", "trsv", "gemm", "syr2k")


@final
class Lapack(NamedTuple):
    """Addresses for float64 and float32 in the order of `NAMES`, and properties of the library.

    `wide` tells that integers have 64 bits, and `owner` is the package that has the library.
    """

    doubles: tuple[int, ...]
    floats: tuple[int, ...]
    wide: bool
    owner: str


@cache
def lapack() -> Lapack | None:
    """Return all functions, of one library; None if no library has them all."""
    # Native code passes 64-bit integers, of which 32-bit libraries read the lower half.
    narrow = sys.byteorder == "little"
    names = [f"{{}}{kind}{name}_{{}}" for kind in "ds" for name in NAMES]
    for functions, is_wide in library_functions(_libraries(), names):
        if is_wide or narrow:
            found = tuple(map(address_of, functions))
            return Lapack(found[: len(NAMES)], found[len(NAMES) :], is_wide, "NumPy")
    return _load_scipy_lapack() if narrow else None


def _libraries() -> Iterator[ctypes.CDLL]:
    yield from libraries()
    module = sys.modules.get("numpy.linalg._umath_linalg")
    path = getattr(module, "__file__", None)
    library = None if path is None else library_at(path)
    if library is not None:
        yield library


def _load_scipy_lapack() -> Lapack | None:
    """Return the functions that SciPy exports for Cython."""
    try:
        tables = [
            importlib.import_module(f"scipy.linalg.cython_{name}").__pyx_capi__
            for name in ("blas", "lapack")
        ]
        rows = [[tables[n not in _OF_BLAS][f"{kind}{n}"] for n in NAMES] for kind in "ds"]
        doubles, floats = (tuple(map(_pointer, row)) for row in rows)
        return Lapack(doubles, floats, False, "SciPy")
    except (ImportError, AttributeError, KeyError, ValueError):
        return None


def _pointer(capsule: object) -> int:
    """Return the address in a capsule, whose name has the argument types."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    told: bytes = name(capsule)
    if b" int *" not in told:
        raise ValueError(f"whole numbers of another size: {told!r}")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    found: int = pointer(capsule, told)
    return found


def tell_of_lapack(library: ctypes.CDLL, text: str) -> None:
    """Pass the addresses of LAPACK's functions to a library with that source text."""
    if "pg_lapack_" not in text:
        return
    there = lapack()
    assert there is not None
    for name, functions in (("f64", there.doubles), ("f32", there.floats)):
        if f"void *pg_lapack_{name}[" in text:
            table = ctypes.c_void_p * len(functions)
            table.in_dll(library, f"pg_lapack_{name}")[:] = list(functions)
    if "int pg_lapack_wide" in text:
        ctypes.c_int.in_dll(library, "pg_lapack_wide").value = there.wide
