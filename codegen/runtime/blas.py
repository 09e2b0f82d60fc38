"""Number of BLAS threads: one while a kernel runs that has products in blocks.

Products in blocks are small, nested threads compete for cores, and the bits of a product may depend
on the number of threads. OpenBLAS, which is bundled with the wheels of NumPy, has one setting for
the whole process. Other libraries are left alone.

The gain, by `python benchmarks/side_effects.py`, on two cores shared with other work: the gradient
of two layers of 64 units on 4,096 rows takes 22 times as long (quartiles 16 and 29) if BLAS keeps
its threads, and 32 times with one thread for the kernel, as threads wait for each other.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, final

from primgraph.base.locks import after_fork, make_lock

# Name decorations of OpenBLAS builds.
DECORATIONS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))
# The result of `get_parallel` for OpenMP threads, each of which has a setting of its own.
_OPENMP = 2


@final
class _Setting:
    """Getter and setter of the number of BLAS threads, and the holders that need it to be one."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], None]) -> None:
        self.get, self.put = get, put
        # A finaliser may call a kernel within these lines, in the same thread.
        self.lock = make_lock()
        self.holders: set[object] = set()
        self.before = 1

    def hold(self, holder: object) -> None:
        """Set BLAS to one thread until `holder`, and all others, have released it."""
        with self.lock:
            self.holders.add(holder)
            if len(self.holders) == 1:
                self.before = self.get()
                self.put(1)

    def release_threads(self, holder: object) -> None:
        with self.lock:
            if holder not in self.holders:
                return
            self.holders.remove(holder)
            # A setting that was changed meanwhile is kept.
            if not self.holders and self.get() == 1:
                self.put(self.before)


def is_controlled() -> bool:
    """Return whether kernels can compute each product with one thread."""
    return _setting() is not None


def single_threaded(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `run` to use one thread for BLAS; several threads may run it at the same time."""
    setting = _setting()
    if setting is None:
        return run

    def call(*args: Any) -> Any:
        holder = object()
        try:
            setting.hold(holder)
            return run(*args)
        finally:
            setting.release_threads(holder)

    return call


def _setting() -> _Setting | None:
    """Return the setting of the only OpenBLAS that NumPy uses; None if there is none."""
    with _looking:
        return _found_setting()


_looking = make_lock()


@cache
def _found_setting() -> _Setting | None:
    names = [f"{{}}openblas_{what}{{}}" for what in _FUNCTIONS]
    for (put, get, parallel), _ in library_functions(libraries(), names):
        return None if parallel() == _OPENMP else _Setting(get, put)
    return None


@cache
def product(name: str) -> tuple[int, bool] | None:
    """Return the address of "dgemm" or "sgemm", and whether its integers have 64 bits; or None."""
    for (function,), is_wide in library_functions(libraries(), [f"{{}}{name}_{{}}"]):
        return address_of(function), is_wide
    return None


def library_functions(
    places: Iterable[ctypes.CDLL], names: Sequence[str]
) -> Iterator[tuple[list[Any], bool]]:
    """Yield functions from each library and build that has all of them.

    Names have two fields for decorations. The second one tells that integers have 64 bits.
    """
    for library in places:
        for before, after in DECORATIONS:
            spelled = [name.format(before, after) for name in names]
            if all(hasattr(library, name) for name in spelled):
                yield [getattr(library, name) for name in spelled], bool(after)


def address_of(function: Any) -> int:
    """Return the address of a function of a library."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


_FUNCTIONS = ("set_num_threads", "get_num_threads", "get_parallel")


def libraries() -> Iterator[ctypes.CDLL]:
    """Yield loaded libraries that may contain or link to OpenBLAS."""
    module = sys.modules.get("numpy._core._multiarray_umath")
    path = getattr(module, "__file__", None)
    if path is None:
        return
    bundled = sorted(Path(path).parents[2].glob("numpy.libs/*openblas*"))
    for file in (path, *bundled):
        found = library_at(str(file))
        if found is not None:
            yield found


def library_at(path: str) -> ctypes.CDLL | None:
    """Return the loaded library of that file."""
    try:
        # Calls keep the interpreter's lock, so that no thread is in a call when another one forks.
        # Otherwise the child would wait forever for a lock that is held within OpenBLAS.
        return ctypes.PyDLL(path)
    except OSError:
        return None


@after_fork
def _reset_after_fork() -> None:
    """Reset the setting in a child process, where none of the holders exists."""
    setting = _found_setting() if _found_setting.cache_info().currsize else None
    if setting is not None and setting.holders:
        setting.holders.clear()
        # The setter takes a lock of OpenBLAS, which a product in another thread may have held.
        if setting.get() != setting.before:
            setting.put(setting.before)
