"""Compiles C and keeps what came out, by content: the next process compiles nothing.

A compiler is `$CC`, or the first of `cc`, `gcc` and `clang` on the path. What it makes is kept in
the user's cache folder under the hash of the source, of the compiler and its version, of the flags
and of the processor. Files are complete, checked by a hash of their own, and this user's; of those
that were not used for longest, some are removed when they take up too much.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, final

import numpy as np

from primgraph.codegen.native.functions import families, family
from primgraph.errors import CompileError

_HERE = Path(__file__).parent

# Where NaNs, infinities and the order of sums stay as they are written.
_FLAGS = ("-std=c11", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-march=native")
# Of a kernel, and of the runtime, in which a product and a sum may be rounded once.
KERNEL_FLAGS = (
    *_FLAGS,
    "-O2",
    "-ftree-vectorize",
    "-fvect-cost-model=dynamic",
    "-ffp-contract=off",
)
RUNTIME_FLAGS = (*_FLAGS, "-O3", "-ffp-contract=fast")
# Of elementary functions, whose roundings are where they are written: branches that limit arguments
# are not to be drawn out of them.
FUNCTION_FLAGS = (
    *_FLAGS,
    "-O2",
    "-ftree-vectorize",
    "-fno-thread-jumps",
    "-ffp-contract=off",
)

# The longest that one run of a compiler may take, in seconds, and how much is kept, in bytes.
TIME_LIMIT = 300
CACHE_LIMIT = 512 * 2**20


@final
class NoCompiler(CompileError):
    """There is no C compiler, or it does not work."""


class Compiler(NamedTuple):
    """The words that a compiler is called by, and what it says of itself."""

    command: tuple[str, ...]
    version: str

    @property
    def name(self) -> str:
        return " ".join(self.command)


@cache
def compiler() -> Compiler | None:
    """The compiler of this machine; None, with one warning, where there is none."""
    wanted = os.environ.get("CC")
    names = [wanted] if wanted else ["cc", "gcc", "clang"]
    for name in names:
        # CC may have options behind the command.
        first, *options = shlex.split(name) or [""]
        path = shutil.which(first)
        if path is None:
            continue
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=20, check=True
            )
            version = told.stdout.splitlines()[0] if told.stdout else path
            return Compiler((path, *options), version)
    warnings.warn(
        f"no C compiler ({', '.join(names)}) is to be found: native kernels are NumPy's instead",
        RuntimeWarning,
        stacklevel=2,
    )
    return None


def cache_folder() -> Path:
    """Where compiled files are kept: $PRIMGRAPH_CACHE, or a folder in the user's cache."""
    given = os.environ.get("PRIMGRAPH_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "primgraph"


@cache
def _processor() -> str:
    """What tells processors apart whose native code differs."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor() or platform.machine()


def library(text: str, *, runtime: bool = True) -> Path:
    """The shared library that the C in `text` is, with the runtime in it.

    Raises `NoCompiler` where there is none, `CompileError` with its message where it fails.
    """
    objects = [_runtime(), *map(_family, families(text))] if runtime else []
    return _made(text, ".so", KERNEL_FLAGS, ["-shared"], [*map(str, objects), "-lm"])


def _runtime() -> Path:
    # Looked for each time: what is kept may be removed while this process runs.
    return _made((_HERE / "runtime.c").read_text(), ".o", RUNTIME_FLAGS, ["-c"], [])


def _family(name: str) -> Path:
    return _made(family(name), ".o", FUNCTION_FLAGS, ["-c"], [])


@cache
def caller() -> Path:
    """The extension module whose objects call native kernels."""
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    ending = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    flags = (*_FLAGS[:3], "-O2", *include)
    extra = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    return _made((_HERE / "call.c").read_text(), ending, flags, ["-shared"], extra)


def _made(
    text: str, ending: str, flags: Sequence[str], kind: Sequence[str], others: Sequence[str]
) -> Path:
    """The file that the compiler makes of `text`, which may be there already."""
    found = compiler()
    if found is None:
        raise NoCompiler("there is no C compiler", hint="install gcc or clang, or set CC")
    parts = (
        text,
        ending,
        *flags,
        *kind,
        *others,
        *found.command,
        found.version,
        _processor(),
        sys.version,
        np.__version__,
    )
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
    folder = _folder()
    made = folder / f"{key}{ending}"
    if _is_good(made):
        with contextlib.suppress(OSError):
            os.utime(made)
            os.utime(_sum_of(made))
        return made
    with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as work:
        source, out = Path(work) / "kernel.c", Path(work) / f"out{ending}"
        source.write_text(text)
        command = [*found.command, *flags, *kind, "-o", str(out), str(source), *others]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise CompileError(f"{found.name} did not end within {TIME_LIMIT} seconds") from None
        if done.returncode or not out.is_file():
            kept = _kept_for_the_user(text)
            raise CompileError(
                f"{found.name} failed on {kept}:\n{done.stderr.strip()[:2000]}",
            )
        (Path(work) / "sum").write_text(_sum(out))
        os.replace(Path(work) / "sum", _sum_of(made))
        os.replace(out, made)
    _bound(folder)
    return made


def _sum_of(path: Path) -> Path:
    """Where the check sum of a file is."""
    return path.with_suffix(path.suffix + ".sum")


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _is_good(path: Path) -> bool:
    """Whether a file is there, is this user's, and is what was once written."""
    try:
        told = _sum_of(path).read_text()
        status = path.stat()
        own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        return own and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and told == _sum(path)
    except OSError:
        return False


@cache
def _temporary() -> Path:
    """A folder of this process's, where the cache cannot be written."""
    return Path(tempfile.mkdtemp(prefix="primgraph-"))


def _folder() -> Path:
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if (
            own
            and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            and os.access(folder, os.W_OK)
        ):
            return folder
    except OSError:
        pass
    return _temporary()


def _kept_for_the_user(text: str) -> Path:
    number, path = tempfile.mkstemp(prefix="primgraph-", suffix=".c")
    with os.fdopen(number, "w") as file:
        file.write(text)
    return Path(path)


def _bound(folder: Path) -> None:
    """Remove what was not used for longest, as far as the cache is too large."""
    with contextlib.suppress(OSError):
        files = [(f.stat().st_mtime, f.stat().st_size, f) for f in folder.iterdir() if f.is_file()]
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= CACHE_LIMIT:
                break
            path.unlink(missing_ok=True)
            total -= size
