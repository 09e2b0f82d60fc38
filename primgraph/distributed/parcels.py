"""Serialised kernels: sent to each worker once as graphs, compiled and cached there by content."""

from __future__ import annotations

import hashlib
import io
import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.locks import make_lock
from primgraph.base.providers import provider
from primgraph.codegen import Kernel
from primgraph.errors import LoadError, RunError

Array: TypeAlias = "np.ndarray[Any, Any]"

# Constants of at least this many bytes are sent separately from the graph.
LARGE = 1 << 18
# Maximum number of compiled kernels per process.
_KEPT = 64


def version() -> str:
    """Return the version of primgraph that runs here."""
    found: str = provider("version").__version__
    return found


@final
@dataclass(frozen=True, slots=True)
class Parcel:
    """Packed kernel arguments; `digest` is of the content, `version` that of the packer.

    `large` are the digests of the arrays that are sent separately.
    """

    version: str
    digest: str
    blob: bytes
    large: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        return len(self.blob)


@final
@dataclass(frozen=True, slots=True)
class Named:
    """Reference to a kernel that was sent to each worker, by digest."""

    digest: str


class MissingKernel(RunError):
    """Error for a kernel that was not sent to a worker."""


def pack(parts: tuple[Any, ...]) -> tuple[Parcel, list[Array]]:
    """Pack the constructor arguments of a kernel; return the parcel and its large constants."""
    large: dict[int, Array] = {}
    file = io.BytesIO()
    _Packer(file, large).dump(parts)
    text = file.getvalue()
    digests = tuple([_digest(a.tobytes()) for a in large.values()])
    name = _digest(text, *[d.encode() for d in digests], version().encode())
    return Parcel(version(), name, zlib.compress(text, 6), digests), [*large.values()]


def _digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:32]


@final
class _Packer(pickle.Pickler):
    """Pickler that replaces large arrays by references, and collects them by id."""

    def __init__(self, file: io.BytesIO, large: dict[int, Array]) -> None:
        super().__init__(file, protocol=5)
        self._large = large
        self._numbers: dict[int, int] = {}

    def persistent_id(self, item: Any) -> int | None:
        if type(item) is not np.ndarray or item.nbytes < LARGE or item.dtype.hasobject:
            return None
        self._large.setdefault(id(item), item)
        return self._numbers.setdefault(id(item), len(self._numbers))


@final
class _Opener(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, large: Sequence[Array]) -> None:
        super().__init__(file)
        self._large = large

    def persistent_load(self, number: Any) -> Any:
        return self._large[number]


_parcels: dict[str, Parcel] = {}
_kernels: dict[str, Kernel] = {}
_lock = make_lock()


def keep(parcel: Parcel) -> None:
    """Register a kernel by name in this process. Raises `LoadError` like `open_parcel`."""
    _require_version(parcel)
    _parcels[parcel.digest] = parcel


def forget(digest: str) -> None:
    _parcels.pop(digest, None)


def _require_version(parcel: Parcel) -> None:
    if parcel.version != version():
        raise LoadError(
            f"this kernel was made by primgraph {parcel.version}, and here is {version()}",
            hint="the client and all workers need the same version of primgraph",
        )


def open_parcel(named: Parcel | Named, large: Sequence[Array] = ()) -> Kernel:
    """Return the kernel of a parcel, compiled once per process and cached.

    Raises `LoadError` if another version of primgraph packed it, and `MissingKernel` for an unknown
    name.
    """
    parcel = named if isinstance(named, Parcel) else _parcels.get(named.digest)
    if parcel is None:
        raise MissingKernel(f"the kernel {named.digest} has not come here")
    _require_version(parcel)
    # A thread that needs the same kernel waits for the one that compiles it.
    with _lock:
        kernel = _kernels.pop(parcel.digest, None)
        if kernel is None:
            parts = _Opener(io.BytesIO(zlib.decompress(parcel.blob)), large).load()
            kernel = Kernel(*parts)
        _kernels[parcel.digest] = kernel
        while len(_kernels) > _KEPT:
            del _kernels[next(iter(_kernels))]
        return kernel
