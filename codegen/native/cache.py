"""The folder where what compilers made is kept: the user's own, checked, and bounded.

What is kept is a file under the hash of all that it was made of, and beside it a check sum. Both
are written elsewhere first. Whoever makes one holds a lock meanwhile, so that of many processes one
does it and the others wait; what is half written, damaged, or may be another user's is made again.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import os
import re
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, final

# How much is kept, in bytes, and how old a folder is, in seconds, that nobody works in any more.
LIMIT = 512 * 2**20
_LEFT = 3600
# Locks are few, and stay: what has one name is made one after another.
_LOCKS = 64
_WAIT = 0.02

# What is ours in the folder, whatever else may be there.
_KEPT = r"[0-9a-f]{40}\."
_OURS = r"[0-9a-f]{40}\.|making-|lock-\d+$|compiler-[0-9a-f]{40}$"
_WORK = "making-"
# How files end that say what C is written of a graph.
GRAPH = ".graph"


def _files() -> Any:
    """What makes temporary folders, which takes as long to import as a library to load."""
    return importlib.import_module("tempfile")


def cache_folder() -> Path:
    """Where compiled files are kept: $PRIMGRAPH_CACHE, or a folder in the user's cache."""
    given = os.environ.get("PRIMGRAPH_CACHE")
    try:
        if given:
            return Path(given).expanduser()
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        # There is no home.
        base = Path(_files().gettempdir()) / f"cache-{getattr(os, 'getuid', int)()}"
    return Path(base) / "primgraph"


def usable_folder() -> Path:
    """That folder, made if it has to be; where it is not to be used, one of this process's."""
    try:
        folder = cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    return _temporary(os.getpid())


@cache
def _temporary(process: int) -> Path:
    """A folder of this process's alone, which goes when it ends."""
    made: str = _files().mkdtemp(prefix="primgraph-")

    def remove() -> None:
        if os.getpid() == process:
            _remove(made)

    atexit.register(remove)
    return Path(made)


def _is_own(status: os.stat_result) -> bool:
    """Whether nobody but this user may have written it."""
    own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_private(folder: Path) -> bool:
    """Whether nobody else may write into a folder, or put another one into its place."""
    if not _is_own(folder.stat()):
        return False
    if not hasattr(os, "getuid"):
        return True
    for parent in Path(os.path.realpath(folder)).parents:
        status = parent.stat()
        open_to = status.st_mode & stat.S_IWOTH
        if status.st_mode & stat.S_IWGRP and status.st_gid not in (os.getgid(), 0):
            open_to = 1
        # In a folder like /tmp everyone may write, but only touch what is their own.
        if open_to and not status.st_mode & stat.S_ISVTX:
            return False
        if status.st_uid not in (os.getuid(), 0) and not status.st_mode & stat.S_ISVTX:
            return False
    return True


def _remove(folder: str | Path) -> None:
    importlib.import_module("shutil").rmtree(folder, ignore_errors=True)


# Files and their sums.


def sum_of(path: Path) -> Path:
    """Where the check sum of a file is."""
    return path.with_suffix(path.suffix + ".sum")


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_good(path: Path) -> bool:
    """Whether a file is there, is this user's, and is what was once written."""
    try:
        return (
            _is_own(path.stat())
            and _is_own(sum_of(path).stat())
            and sum_of(path).read_text() == _sum(path)
        )
    except (OSError, UnicodeDecodeError):
        return False


def is_own_file(path: Path) -> bool:
    """Whether a file is there and nobody but this user may have written it."""
    return path.is_file() and _is_own(path.stat())


def used(path: Path) -> None:
    """Let a file be one of those that were used last."""
    with contextlib.suppress(OSError):
        os.utime(path)
        os.utime(sum_of(path))


def keep(made: Path, path: Path) -> None:
    """Let `made`, in a folder beside, be the file at `path`, as a whole or not at all."""
    told = made.with_name("sum")
    told.write_text(_sum(made))
    os.replace(told, sum_of(path))
    os.replace(made, path)


def forget(path: Path) -> None:
    """Remove a file that is of no use."""
    for file in (path, sum_of(path)):
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def work_in(folder: Path) -> Iterator[Path]:
    """A folder to work in, inside of `folder`, which is gone afterwards."""
    made = _files().TemporaryDirectory(dir=folder, prefix=_WORK, ignore_cleanup_errors=True)
    with made as name:
        yield Path(name)


@contextlib.contextmanager
def locked(folder: Path, key: str, limit: float) -> Iterator[None]:
    """Nobody else makes what has that key meanwhile; after `limit` seconds that may be anyway.

    A process that ends, however it does, lets go of what it holds.
    """
    handle = -1
    try:
        # Where there are no locks, one file may be made twice.
        if os.name == "posix":
            with contextlib.suppress(OSError):
                name = folder / f"lock-{int(key[:8], 16) % _LOCKS}"
                handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                _held.add(handle)
                _wait(handle, limit)
        yield
    finally:
        if handle in _held:
            _held.discard(handle)
            _let_go(handle)


# Locks of this process. One that splits off has them, too, and would wait for itself.
_held: set[int] = set()


def _let_go(handle: int) -> None:
    """Let go of a lock, whoever has its file open still."""
    with contextlib.suppress(OSError):
        locks = importlib.import_module("fcntl")
        locks.flock(handle, locks.LOCK_UN)
    os.close(handle)


def _after_fork() -> None:
    while _held:
        os.close(_held.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _wait(handle: int, limit: float) -> None:
    locks = importlib.import_module("fcntl")
    end = time.monotonic() + limit
    while time.monotonic() < end:
        try:
            locks.flock(handle, locks.LOCK_EX | locks.LOCK_NB)
        except BlockingIOError:
            time.sleep(_WAIT)
        else:
            return


# What is there.


@final
class Contents(NamedTuple):
    """What is kept: the folder, how many compiled files are in it, and how many bytes of all."""

    folder: Path
    files: int
    size: int


def _ours(folder: Path) -> list[Path]:
    try:
        return [f for f in folder.iterdir() if re.match(_OURS, f.name) and not f.is_symlink()]
    except OSError:
        return []


def contents() -> Contents:
    """What is kept now."""
    folder = cache_folder()
    count = size = 0
    for path in _ours(folder):
        with contextlib.suppress(OSError):
            size += path.stat().st_size if path.is_file() else 0
        count += bool(re.match(_KEPT, path.name)) and path.suffix not in (".sum", GRAPH)
    return Contents(folder, count, size)


def clear() -> Contents:
    """Remove what is kept, and nothing else, nor where some process is at work; what that was.

    Raises OSError where it cannot be removed.
    """
    found = contents()
    for path in _ours(found.folder):
        if path.is_dir():
            _clear_old(path)
        else:
            path.unlink(missing_ok=True)
    return found


def _clear_old(work: Path) -> None:
    """Remove a folder that nobody works in any more."""
    with contextlib.suppress(OSError):
        if time.time() - work.stat().st_mtime > _LEFT:
            _remove(work)


def bound(folder: Path) -> None:
    """Remove what was not used for longest, as far as too much is kept, and what was left over."""
    files = []
    for path in _ours(folder):
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.is_dir():
                _clear_old(path)
            elif re.match(_KEPT, path.name):
                files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
            total -= size
