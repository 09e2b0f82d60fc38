"""How kernels travel: as graphs, once to a worker, where they are compiled and kept by content."""

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

# Constants of so many bytes travel by themselves, beside the graph.
LARGE = 1 << 18
# How many kernels a process keeps compiled.
_KEPT = 64


def version() -> str:
    """The version of primgraph that runs here."""
    found: str = provider("version").__version__
    return found


@final
@dataclass(frozen=True, slots=True)
class Parcel:
    """What a kernel is made of, packed; `digest` is of its content, `version` of who packed it.

    `large` are digests of the arrays that travel beside it.
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
    """A kernel that each worker has been given, by its content."""

    digest: str


class MissingKernel(RunError):
    """A worker has not been given a kernel."""


def pack(parts: tuple[Any, ...]) -> tuple[Parcel, list[Array]]:
    """The parcel of a kernel's parts, as its constructor takes them, and its large constants."""
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
    """Leaves large arrays out, and puts them into a dictionary by their identity."""

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
    """Let this process have a kernel by name. Raises `LoadError` as `opened` does."""
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


def opened(named: Parcel | Named, large: Sequence[Array] = ()) -> Kernel:
    """The kernel in a parcel; compiled once in this process while it is used now and then.

    Raises `LoadError` if another version of primgraph packed it, and `MissingKernel` for a name
    that is not known here.
    """
    parcel = named if isinstance(named, Parcel) else _parcels.get(named.digest)
    if parcel is None:
        raise MissingKernel(f"the kernel {named.digest} has not come here")
    _require_version(parcel)
    # Two threads that need the same kernel wait for one that compiles it.
    with _lock:
        kernel = _kernels.pop(parcel.digest, None)
        if kernel is None:
            parts = _Opener(io.BytesIO(zlib.decompress(parcel.blob)), large).load()
            kernel = Kernel(*parts)
        _kernels[parcel.digest] = kernel
        while len(_kernels) > _KEPT:
            del _kernels[next(iter(_kernels))]
        return kernel
