"""The cache of compiled files: private to the user, with checksums and a size limit.

File names begin with the hash of all inputs. Files end with a checksum of name and content, so that
a damaged, truncated or renamed file is not used. Files are written elsewhere first. A process that
creates a file holds a lock, so that only one process compiles it while the others wait.
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

from primgraph.base.locks import after_fork
from primgraph.codegen.runtime.toolchain.folder import WORK, Folder, open_private

# Size limit of the cache in bytes, and age in seconds of unfinished work that counts as abandoned.
LIMIT = 512 * 2**20
_LEFT = 3600
# The number of locks is fixed: files whose keys share a lock are created one after another.
_LOCKS = 64
_WAIT = 0.02

# Names of cache files; other files in the folder are left alone.
_KEPT = re.compile(r"[0-9a-f]{40}\.")
_OURS = re.compile(rf"[0-9a-f]{{40}}\.|{WORK}|lock-\d+$|compiler-[0-9a-f]{{40}}$")
# The suffix of files with the C code of a graph.
GRAPH = ".graph"
# The suffix of files with the NumPy code of a graph.
CODE = ".code"
# The suffix of files with the times of NumPy and C for a graph.
TIMES = ".times"
# Checksum files of older versions.
_OLD = ".sum"
# Size of the checksum at the end of a file: a newline and a hash.
_TAIL = 65


class UnknownError(Exception):
    """Raised if a key would depend on state that other processes do not share."""


@final
class Stored(NamedTuple):
    """A file of the cache: its name, and its content without the checksum."""

    name: str
    content: bytes


def key_of(*parts: str) -> str:
    """Return the hash of the parts, which may be paths that are not Unicode."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.sha256(text).hexdigest()[:40]


def _temporary_files() -> Any:
    """Return `tempfile`, imported lazily as importing it takes as long as loading a library."""
    return importlib.import_module("tempfile")


def cache_folder() -> Path:
    """Return the path of the cache: $PRIMGRAPH_CACHE, or a folder in the user's cache.

    Raises `OSError` if the cache is switched off.
    """
    given = os.environ.get("PRIMGRAPH_CACHE")
    if given == "0":
        raise OSError("PRIMGRAPH_CACHE=0 switches the cache off")
    try:
        if given:
            return Path(given).expanduser()
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        # There is no home directory.
        number = getattr(os, "getuid", int)()
        base = Path(_temporary_files().gettempdir()) / f"cache-{number}"
    return Path(base) / "primgraph"


def usable_folder() -> Folder:
    """Open the cache, or a folder of this process if the cache is not private or writable.

    Raises `OSError` if there is no private folder at all.
    """
    with contextlib.suppress(OSError):
        folder = open_private(cache_folder(), make=True)
        if os.access(folder.path, os.W_OK | os.X_OK):
            return folder
        folder.close()
    with contextlib.suppress(OSError):
        return open_private(_temporary(os.getpid()))
    # The folder may have been removed.
    _temporary.cache_clear()
    return open_private(_temporary(os.getpid()))


@cache
def _temporary(process: int) -> str:
    """Create a private folder of this process, which is removed at exit."""
    bases = ["/tmp", "/var/tmp", "/dev/shm"] if os.name == "posix" else []
    with contextlib.suppress(OSError):
        # On a full disk there is no temporary folder.
        bases.insert(0, _temporary_files().gettempdir())
    fault: OSError = FileNotFoundError("there is no folder for temporary files")
    for base in bases:
        try:
            made: str = _temporary_files().mkdtemp(prefix="primgraph-", dir=base)
        except OSError as error:
            fault = error
            continue
        try:
            open_private(made).close()
        except OSError as error:
            fault = error
            _remove(made)
            continue
        atexit.register(_remove_of, process, made)
        return made
    raise fault


def _remove_of(process: int, folder: str) -> None:
    if os.getpid() == process:
        _remove(folder)


def _remove(folder: str) -> None:
    importlib.import_module("shutil").rmtree(folder, ignore_errors=True)


# Files and their checksums.


def _sum_of(name: str, content: bytes) -> bytes:
    """Return the line with the checksum, which ends a file of that name."""
    found = hashlib.sha256(os.fsencode(name) + b"\0")
    found.update(content)
    return b"\n" + found.hexdigest().encode()


def recall(folder: Folder, name: str) -> bytes | None:
    """Return the content stored under a name; None if it is missing or damaged."""
    found = folder.read(name)
    if found is None:
        return None
    content = found[:-_TAIL]
    if found[-_TAIL:] != _sum_of(name, content):
        return None
    folder.touch(name)
    return content


def keep(folder: Folder, name: str, content: bytes) -> None:
    """Store a file atomically. Raises `OSError` if that fails."""
    folder.write(name, content, _sum_of(name, content))


def forget(*names: str) -> None:
    """Remove unusable files."""
    with contextlib.suppress(OSError), usable_folder() as folder:
        for name in names:
            folder.remove(name)


@contextlib.contextmanager
def lock_key(folder: Folder, key: str, limit: float) -> Iterator[None]:
    """Hold the lock of a key for at most `limit` seconds, so that one process creates the file.

    A process releases its locks when it ends, however it does.
    """
    handle = -1
    try:
        # Without locks a file may be created twice.
        if os.name == "posix":
            with contextlib.suppress(OSError):
                handle = folder.open_lock(f"lock-{int(key[:8], 16) % _LOCKS}")
                _held.add(handle)
                _wait(handle, limit)
        yield
    finally:
        if handle in _held:
            _held.discard(handle)
            _release(handle)


# Locks of this process. A child process inherits them, and would wait for itself.
_held: set[int] = set()


def _release(handle: int) -> None:
    """Release a lock, even if a child process still has its file open."""
    with contextlib.suppress(OSError):
        locks = importlib.import_module("fcntl")
        locks.flock(handle, locks.LOCK_UN)
    os.close(handle)


@after_fork
def _close_inherited_locks() -> None:
    while _held:
        os.close(_held.pop())


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


# The contents of the cache.


@final
class Contents(NamedTuple):
    """The folder of the cache, its number of compiled files, and the size of all files.

    `fault` is the reason if the folder is not used.
    """

    folder: Path
    files: int
    size: int
    fault: str = ""


def _ours(folder: Folder) -> list[tuple[str, os.stat_result]]:
    """Return the cache files in a folder, including unfinished ones."""
    kinds = stat.S_IFREG, stat.S_IFDIR
    return [
        (name, status)
        for name, status in folder.entries()
        if _OURS.match(name) and stat.S_IFMT(status.st_mode) in kinds
    ]


def contents() -> Contents:
    """Return the current contents of the cache."""
    return _contents(remove=False)


def clear() -> Contents:
    """Clear the cache, except entries that are being compiled; return the former contents.

    Raises `OSError` if it cannot be removed.
    """
    return _contents(remove=True)


def _contents(*, remove: bool) -> Contents:
    path, files, size = Path("0"), 0, 0
    try:
        path = cache_folder()
        folder = open_private(path)
    except FileNotFoundError:
        return Contents(path, 0, 0)
    except OSError as error:
        if remove:
            raise
        return Contents(path, 0, 0, str(error))
    with folder:
        for name, status in _ours(folder):
            is_file = stat.S_ISREG(status.st_mode)
            size += status.st_size if is_file else 0
            compiled = _KEPT.match(name) and not name.endswith((_OLD, GRAPH, CODE, TIMES))
            files += bool(compiled)
            if remove and not _is_work(name):
                folder.unlink(name)
            elif remove:
                _clear_old(folder, name, status)
    return Contents(path, files, size)


def _is_work(name: str) -> bool:
    return name.startswith(WORK)


def _clear_old(folder: Folder, name: str, status: os.stat_result) -> None:
    """Remove an abandoned file or folder."""
    if time.time() - status.st_mtime > _LEFT:
        folder.remove_tree(name) if stat.S_ISDIR(status.st_mode) else folder.remove(name)


def evict_files(folder: Folder) -> None:
    """Evict the least recently used files beyond the limit, and abandoned work."""
    files = []
    for name, status in _ours(folder):
        if _is_work(name):
            _clear_old(folder, name, status)
        elif _KEPT.match(name):
            files.append((status.st_mtime, status.st_size, name))
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= LIMIT:
            break
        folder.remove(name)
        total -= size
