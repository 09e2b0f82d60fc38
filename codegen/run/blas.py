"""How many threads NumPy's BLAS has: one while a kernel runs that has products in blocks.

Products in blocks are small, threads beneath threads get in each other's way, and the bits of a
product may depend on how many threads computed it. OpenBLAS, which the wheels of NumPy bring
along, has one setting for the whole process; other libraries are left alone.

What it gains, by `python benchmarks/side_effects.py`: on two cores that other work shares, the
gradient of two layers of 64 units on 4,096 rows takes 22 times as long (quartiles 16 and 29) where
BLAS keeps its threads, and 32 times where the kernel has one, as they wait for one another.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, final

from primgraph.base.locks import make_lock

# How builds of OpenBLAS decorate the names of their functions.
DECORATIONS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))
# What OpenBLAS answers where its threads are OpenMP's: there each thread has a setting of its own.
_OPENMP = 2


@final
class _Setting:
    """The number of threads of BLAS as two functions, and who wants it to be one."""

    def __init__(self, get: Callable[[], int], put: Callable[[int], None]) -> None:
        self.get, self.put = get, put
        # A finaliser may call a kernel in the middle of these lines, in the same thread.
        self.lock = make_lock()
        self.holders: set[object] = set()
        self.before = 1

    def hold(self, holder: object) -> None:
        """Leave BLAS one thread until `holder`, and all others, have let go."""
        with self.lock:
            self.holders.add(holder)
            if len(self.holders) == 1:
                self.before = self.get()
                self.put(1)

    def let_go(self, holder: object) -> None:
        with self.lock:
            if holder not in self.holders:
                return
            self.holders.remove(holder)
            # A number that somebody has set meanwhile is left as it is.
            if not self.holders and self.get() == 1:
                self.put(self.before)


def is_controlled() -> bool:
    """Whether kernels can have each product computed by one thread."""
    return _setting() is not None


def single_threaded(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, with one thread for BLAS; several threads may be in it at the same time."""
    setting = _setting()
    if setting is None:
        return run

    def call(*args: Any) -> Any:
        holder = object()
        try:
            setting.hold(holder)
            return run(*args)
        finally:
            setting.let_go(holder)

    return call


def _setting() -> _Setting | None:
    """The setting of the OpenBLAS that NumPy uses, the only one; None where there is none."""
    with _looking:
        return _found_setting()


_looking = make_lock()


@cache
def _found_setting() -> _Setting | None:
    for library in libraries():
        for before, after in DECORATIONS:
            names = [f"{before}openblas_{what}{after}" for what in _FUNCTIONS]
            if all(hasattr(library, name) for name in names):
                put, get, parallel = (getattr(library, name) for name in names)
                return None if parallel() == _OPENMP else _Setting(get, put)
    return None


@cache
def product(name: str) -> tuple[int, bool] | None:
    """The address of "dgemm" or "sgemm", and whether its integers have 64 bits, if it is there."""
    for library in libraries():
        for before, after in DECORATIONS:
            found = getattr(library, f"{before}{name}_{after}", None)
            if found is not None:
                return ctypes.cast(found, ctypes.c_void_p).value or 0, bool(after)
    return None


_FUNCTIONS = ("set_num_threads", "get_num_threads", "get_parallel")


def libraries() -> Iterator[ctypes.CDLL]:
    """What is loaded already and may have OpenBLAS in it, or beneath it."""
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
    """What is loaded from that file."""
    try:
        # Calls keep the interpreter's lock, so that no thread is in one when another forks:
        # the child would wait for ever for a lock that is taken within OpenBLAS.
        return ctypes.PyDLL(path)
    except OSError:
        return None


def _after_fork() -> None:
    """In a child process nobody of those holds the setting who did in the parent."""
    setting = _found_setting() if _found_setting.cache_info().currsize else None
    if setting is not None and setting.holders:
        setting.holders.clear()
        # That takes a lock of OpenBLAS, which a product in another thread may have held.
        if setting.get() != setting.before:
            setting.put(setting.before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
