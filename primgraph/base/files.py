"""Open regular files for reading: reading a pipe or a device may never end."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_KINDS = (
    (stat.S_ISDIR, "directory"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


def open_regular(
    path: str | os.PathLike[str], *, folder: int | None = None, follow: bool = True
) -> BinaryIO:
    """Return the regular file at `path`, opened for reading.

    A relative path starts at the directory with the descriptor `folder`. Without `follow`, a
    symbolic link is refused. Raises `OSError` for a directory, a pipe, a socket or a device, and
    never waits for one.
    """
    # Opening a device may have effects of its own, so look before as well.
    _require_regular(os.stat(path, dir_fd=folder, follow_symlinks=follow), path)
    flags = _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags, dir_fd=folder)
    try:
        _require_regular(os.fstat(handle), path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _require_regular(status: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((name for test, name in _KINDS if test(status.st_mode)), "special file")
    number = errno.EISDIR if kind == "directory" else errno.EINVAL
    raise OSError(number, f"a {kind}, not a regular file", os.fspath(path))
