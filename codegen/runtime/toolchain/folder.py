"""Directories that no other user can change, held open by a descriptor.

A path is walked from the root, one component at a time. Owner and mode of each component are read
from the descriptor through which the next one is opened. Whatever happens to the path later, a
`Folder` stays the directory that was checked.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
from collections.abc import Iterator
from typing import Any, final

from primgraph.base.files import open_regular

# Prefix of files and directories that are being written.
WORK = "making-"
# Maximum number of symbolic links, as on Linux, and of attempts to create a directory.
_LINKS = 40

# Windows opens no directories.
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
# `O_PATH` needs no permission to list the directory.
_STEP = os.O_RDONLY | getattr(os, "O_PATH", 0) | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC
_LIST = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC


def is_own(status: os.stat_result) -> bool:
    """Return whether this user owns a file, and nobody else may write it."""
    own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@final
class Folder:
    """A private directory; as a context manager it closes its descriptor.

    Names are those of files in it. `path` is for programs that take no descriptors, such as
    compilers: no component of it can be exchanged by another user.
    """

    __slots__ = ("_handle", "path")

    def __init__(self, handle: int | None, path: str) -> None:
        self._handle, self.path = handle, path

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def relative_name(self, name: str) -> tuple[str, int | None]:
        """Return a file's name and the descriptor it is relative to."""
        if _BY_DESCRIPTOR and self._handle is None:
            raise ValueError(f"{self.path!r} is closed")
        return (name if _BY_DESCRIPTOR else os.path.join(self.path, name)), self._handle

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        where, handle = self.relative_name(name)
        try:
            os.stat(where, dir_fd=handle, follow_symlinks=False)
        except OSError:
            return False
        return bool(name)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None unless it is a regular file of this user alone."""
        found = self._read_regular(name)
        return None if found is None or not is_own(found[1]) else found[0]

    def read_output(self, name: str) -> bytes | None:
        """Return the content of a file that a program wrote, with any mode."""
        found = self._read_regular(name)
        return None if found is None else found[0]

    def _read_regular(self, name: str) -> tuple[bytes, os.stat_result] | None:
        where, handle = self.relative_name(name)
        try:
            with open_regular(where, folder=handle, follow=False) as file:
                return file.read(), os.fstat(file.fileno())
        except OSError:
            return None

    def write(self, name: str, *parts: bytes) -> None:
        """Replace a file by these bytes atomically. Raises `OSError` if that fails."""
        draft, handle = self.relative_name(f"{WORK}{os.urandom(8).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC | _BINARY
        made = os.open(draft, flags, 0o600, dir_fd=handle)
        try:
            with os.fdopen(made, "wb") as file:
                for part in parts:
                    file.write(part)
            os.replace(draft, self.relative_name(name)[0], src_dir_fd=handle, dst_dir_fd=handle)
        except BaseException:
            self.remove(draft)
            raise

    def unlink(self, name: str) -> None:
        """Remove a file that may be missing. Raises `OSError` if it cannot be removed."""
        where, handle = self.relative_name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(where, dir_fd=handle)

    def remove(self, name: str) -> None:
        """Remove a file, ignoring failure."""
        with contextlib.suppress(OSError):
            self.unlink(name)

    def touch(self, name: str) -> None:
        """Mark a file as the most recently used one."""
        where, handle = self.relative_name(name)
        with contextlib.suppress(OSError):
            # Do not follow a path that was replaced by a link, if the system supports that.
            follow = os.utime not in os.supports_follow_symlinks
            os.utime(where, dir_fd=handle, follow_symlinks=follow)

    def open_lock(self, name: str) -> int:
        """Return a descriptor of a regular file to lock, which is created if missing."""
        where, handle = self.relative_name(name)
        flags = os.O_RDWR | os.O_CREAT | _NOFOLLOW | _CLOEXEC | getattr(os, "O_NONBLOCK", 0)
        made = os.open(where, flags, 0o600, dir_fd=handle)
        status = os.fstat(made)
        if stat.S_ISREG(status.st_mode) and is_own(status):
            return made
        os.close(made)
        raise PermissionError(f"{name} is not a file of this user")

    def entries(self) -> list[tuple[str, os.stat_result]]:
        """Return names and status of the directory entries, without following links."""
        found = []
        where, handle = self.relative_name("")
        with os.scandir(where if handle is None else handle) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found

    def remove_tree(self, name: str) -> None:
        """Remove a directory tree, ignoring failures."""
        where, handle = self.relative_name(name)
        importlib.import_module("shutil").rmtree(where, ignore_errors=True, dir_fd=handle)

    @contextlib.contextmanager
    def work(self) -> Iterator[Folder]:
        """Yield a new directory in this one, which is removed afterwards."""
        name = f"{WORK}{os.urandom(8).hex()}"
        where, handle = self.relative_name(name)
        os.mkdir(where, 0o700, dir_fd=handle)
        try:
            inner = None
            if _BY_DESCRIPTOR:
                inner = os.open(name, _LIST | _NOFOLLOW, dir_fd=handle)
            with Folder(inner, os.path.join(self.path, name)) as folder:
                yield folder
        finally:
            self.remove_tree(name)


def open_private(path: str | os.PathLike[str], *, make: bool = False) -> Folder:
    """Open the directory at `path`, which no other user can change or replace.

    With `make`, create missing directories. Raises `PermissionError` if another user may write the
    directory or exchange a component of its path, and other `OSError` if there is none.
    """
    given = os.fspath(path)
    if not _BY_DESCRIPTOR:
        if make:
            os.makedirs(given, 0o700, exist_ok=True)
        if not os.path.isdir(given):
            raise FileNotFoundError(f"there is no directory {given!r}")
        return Folder(None, os.path.abspath(given))
    walk = _Walk(os.path.join(os.getcwd(), given), make)
    try:
        while walk.pending:
            walk.step()
        if not is_own(os.fstat(walk.handle)):
            raise PermissionError(f"{walk.path!r} may be written by another user")
        return Folder(os.open(".", _LIST, dir_fd=walk.handle), walk.path)
    finally:
        os.close(walk.handle)


@final
class _Walk:
    """A walk from the root: the descriptor of a checked directory, and the remaining components."""

    def __init__(self, path: str, make: bool) -> None:
        self.make = make
        self.names: list[str] = []
        self.pending = _components(path)
        self.left = _LINKS
        self.handle = os.open("/", _STEP)
        # The owner of the root directory can exchange everything. In a user namespace that is not
        # user 0, but the number that stands for unmapped users.
        self.trusted = {0, os.geteuid(), os.fstat(self.handle).st_uid}

    @property
    def path(self) -> str:
        return "/" + "/".join(self.names)

    def step(self) -> None:
        """Open the next component."""
        name = self.pending.pop()
        self.require_private()
        try:
            below = os.open(name, _STEP | _NOFOLLOW, dir_fd=self.handle)
        except FileNotFoundError:
            if not self.make or not self.left:
                raise
            self.left -= 1
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.handle)
            self.pending.append(name)
            return
        except OSError as error:
            self.follow(name, error)
            return
        os.close(self.handle)
        self.handle = below
        if name == "..":
            del self.names[-1:]
        else:
            self.names.append(name)

    def follow(self, name: str, error: OSError) -> None:
        """Follow a symbolic link; raise `error` if there is none."""
        try:
            target = os.readlink(name, dir_fd=self.handle)
            owner = os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_uid
        except OSError:
            raise error from None
        if not self.left:
            raise error
        if owner not in self.trusted:
            raise PermissionError(f"the link {name!r} in {self.path!r} is of another user")
        self.left -= 1
        self.pending += _components(target)
        if target.startswith("/"):
            os.close(self.handle)
            self.handle, self.names = os.open("/", _STEP), []

    def require_private(self) -> None:
        """Raise `PermissionError` if another user can exchange entries of this directory."""
        status = os.fstat(self.handle)
        if status.st_uid not in self.trusted:
            raise PermissionError(f"{self.path!r} is of another user")
        # In a sticky directory, such as /tmp, users can only rename and remove their own files.
        if status.st_mode & stat.S_ISVTX:
            return
        open_to_group = status.st_mode & stat.S_IWGRP and not self.is_own_group(status.st_gid)
        if status.st_mode & stat.S_IWOTH or open_to_group:
            raise PermissionError(f"{self.path!r} may be written by another user")

    def is_own_group(self, group: int) -> bool:
        """Return whether a group has only this user, and no access list names others."""
        try:
            me: Any = importlib.import_module("pwd").getpwuid(os.geteuid())
            found: Any = importlib.import_module("grp").getgrgid(group)
        except (KeyError, ImportError):
            return False
        if found.gr_name != me.pw_name or not {me.pw_name}.issuperset(found.gr_mem):
            return False
        return not self.has_access_list()

    def has_access_list(self) -> bool:
        """Return whether there is an access list, of which the group mode bits are the mask."""
        if not hasattr(os, "listxattr"):
            return False
        try:
            handle = os.open(".", _LIST, dir_fd=self.handle)
        except OSError:
            return True
        try:
            return "system.posix_acl_access" in os.listxattr(handle)
        except OSError:
            # The file system has no attributes.
            return False
        finally:
            os.close(handle)


def _components(path: str) -> list[str]:
    """Return the components of a path, last first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
