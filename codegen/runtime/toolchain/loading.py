"""Loading of compiled code from memory: only verified content is executed."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from primgraph.codegen.runtime.toolchain import cache

T = TypeVar("T")

_numbers = itertools.count()


def load(stored: cache.Stored, opened: Callable[[str], T]) -> T:
    """Return `opened(path)`, where `path` is a private copy of a library.

    The copy is in memory, or in a new private folder if the system cannot load files from memory.
    Raises the errors of `opened`, and `OSError` if no copy can be made.
    """
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError, ImportError), _in_memory(stored) as path:
            return opened(path)
    with _in_folder(stored) as path:
        return opened(path)


@contextlib.contextmanager
def _in_memory(stored: cache.Stored) -> Iterator[str]:
    handle = os.memfd_create(stored.name[:40], os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(handle, "wb", buffering=0) as file:
        left = memoryview(stored.content)
        while left:
            left = left[file.write(left) :]
        locks = importlib.import_module("fcntl")
        seals = locks.F_SEAL_WRITE | locks.F_SEAL_SHRINK | locks.F_SEAL_GROW | locks.F_SEAL_SEAL
        locks.fcntl(handle, locks.F_ADD_SEALS, seals)
        yield _unique_path(handle)


def _unique_path(handle: int) -> str:
    """Return a path of a descriptor that no other call returns.

    The dynamic linker identifies libraries by path, and descriptor numbers are reused: with a plain
    path it would find an older library.
    """
    marks = f"{next(_numbers):b}".replace("0", "//").replace("1", "/.")
    return f"/proc/self/fd{marks}/{handle}"


@contextlib.contextmanager
def _in_folder(stored: cache.Stored) -> Iterator[str]:
    with cache.usable_folder() as folder, folder.work() as work:
        work.write(stored.name, stored.content)
        yield os.path.join(work.path, stored.name)
