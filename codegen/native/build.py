"""Compiles C and keeps what came out, by content: the next process compiles nothing.

A compiler is `$CC`, or the first of `cc`, `gcc` and `clang` on the path. What it makes is kept in
the user's cache folder under the hash of the source, of the compiler and its version, of the flags
and of the processor. Code is for the processor of this machine, unless `$CC` has options that name
another one, such as `gcc -march=x86-64`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.machinery
import os
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.native import cache
from primgraph.errors import CompileError

_HERE = Path(__file__).parent

# A fault of GCC 12: of a function that calls none, it may take back that the stack is aligned for
# vectors, though it reads arrays there as such, by other registers. Without a red zone the frames
# of those functions are aligned, too.
_STACK = ("-mno-red-zone",) if platform.machine() in ("x86_64", "AMD64") else ()
# Where NaNs, infinities and the order of sums stay as they are written.
_FLAGS = (
    *("-std=c11", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-march=native"),
    *_STACK,
)
_VECTORS = ("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic")
# Of a kernel, and of the files that all have, in which a product and a sum may be rounded once.
KERNEL_FLAGS = (*_FLAGS, *_VECTORS, "-ffp-contract=off")
# Of one in which they may everywhere.
LOOSE_FLAGS = (*_FLAGS, *_VECTORS, "-ffp-contract=fast", "-DLOOSE")
# GCC 12 leaves out that two doubles beside each other become floats, where these become doubles
# again, unless statements outside loops are taken one by one.
_NARROWED, _ONE_BY_ONE = "(float)", ("-fno-tree-slp-vectorize",)
RUNTIME = {
    "runtime.c": (*_FLAGS, "-O3", "-ffp-contract=fast"),
    "products.c": (*_FLAGS, *_VECTORS, "-ffp-contract=fast"),
}
_PRODUCTS = ("pg_matmul_", "pg_onto_", "pg_product_", "pg_added_")
# Of elementary functions, whose roundings are where they are written: branches that limit arguments
# are not to be drawn out of them.
FUNCTION_FLAGS = (
    *_FLAGS,
    "-O2",
    "-ftree-vectorize",
    "-fno-thread-jumps",
    "-ffp-contract=off",
)

# The longest that one run of a compiler may take, in seconds.
TIME_LIMIT = 300


class UnavailableError(CompileError):
    """Nothing can be compiled here and now, whatever the source is.

    There is no compiler, it was killed or came to no end, or there is no room for what it makes.
    """


@final
class FailedError(CompileError):
    """A compiler has refused its source; `told` is its message."""

    def __init__(self, message: str, told: str) -> None:
        super().__init__(message)
        self.told = told


class Compiler(NamedTuple):
    """The words that a compiler is called by, and what it says of itself."""

    command: tuple[str, ...]
    version: str

    @property
    def name(self) -> str:
        return " ".join(self.command)

    @property
    def processor(self) -> tuple[str, ...]:
        """The options that choose a processor: of several the last one counts."""
        return tuple([option for option in self.command[1:] if option.startswith("-m")])


@once
def compiler() -> Compiler | None:
    """The compiler of this machine; None, with one warning, where there is none."""
    there = found()
    if there is None:
        warnings.warn(
            f"no C compiler ({', '.join(_names())}) is to be found: native kernels are NumPy's "
            "instead",
            RuntimeWarning,
            stacklevel=2,
        )
    return there


def _names() -> list[str]:
    wanted = os.environ.get("CC")
    return [wanted] if wanted else ["cc", "gcc", "clang"]


@once
def found() -> Compiler | None:
    """The compiler of this machine; None where there is none."""
    for name in _names():
        # CC may have options behind the command.
        first, *options = importlib.import_module("shlex").split(name) or [""]
        path = _which(first)
        if path is None:
            continue
        version = _version(path)
        if version is not None:
            return Compiler((path, *options), version)
    return None


def _which(command: str) -> str | None:
    """Where a command is, as a shell finds it."""
    if os.name != "posix":
        return str(importlib.import_module("shutil").which(command) or "") or None
    folders = os.get_exec_path() if os.path.basename(command) == command else [""]
    for folder in folders:
        path = os.path.join(folder, command)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _version(path: str) -> str | None:
    """What a compiler says of itself, which is kept while the file stays as it is."""
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)
        told = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}"
        key = hashlib.sha256(told.encode()).hexdigest()
        folder = cache.usable_folder()
        record = folder / f"compiler-{key[:40]}"
        if cache.is_own_file(record):
            known, version = record.read_text().splitlines()
            if known == key:
                return version
        done = _runner().run([path, "--version"], _ASKING)
        if done is not None and not done.returncode:
            lines = done.stdout.splitlines()
            version = lines[0] if lines else path
            with contextlib.suppress(OSError), cache.work_in(folder) as work:
                (work / "version").write_text(f"{key}\n{version}\n")
                os.replace(work / "version", record)
            return version
    return None


# Seconds in which a compiler has to tell its version.
_ASKING = 20


def _runner() -> Any:
    """What runs compilers, which is imported where one is needed."""
    return importlib.import_module("primgraph.codegen.native.compiling")


@once
def _processor() -> str:
    """What tells processors apart whose native code differs."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                return line.rstrip("\n")
    return platform.processor() or platform.machine()


def machine(chosen: Compiler) -> tuple[str, ...]:
    """What tells machines apart, and what is installed there, whose libraries are not the same."""
    return *chosen.command, chosen.version, _processor(), sys.version, np.__version__


def fault_of(text: str) -> str:
    """What the compiler has against the C in `text`; nothing if it is fine."""
    found = compiler()
    assert found is not None
    flags = ("-std=c11", "-fsyntax-only", "-Werror=implicit-function-declaration", "-xc", "-")
    done = _runner().run([*found.command, *flags], TIME_LIMIT, text)
    if done is None:
        return "it did not end"
    return (done.stderr.strip() or "it failed")[:2000] if done.returncode else ""


def library(text: str, *, runtime: bool = True, loose: bool = False) -> Path:
    """The shared library that the C in `text` is, with the runtime in it.

    If `loose` it takes functions within four units in the last place, multiplies in any order,
    and rounds products and sums once.

    Raises `UnavailableError` where nothing can be compiled, and `CompileError` with the compiler's
    message where it fails.
    """
    objects: list[Path] = []
    if runtime:
        products = ["products.c"] if has_products(text) else []
        objects = [_part(name, loose=loose) for name in ("runtime.c", *products)]
        objects += [_family(name, loose=loose) for name in _functions().families(text)]
    flags = (*(LOOSE_FLAGS if loose else KERNEL_FLAGS), *(_ONE_BY_ONE if _NARROWED in text else ()))
    return _made(text, ".so", flags, ["-shared"], [*map(str, objects), "-lm"])


def has_products(text: str) -> bool:
    """Whether C calls products of matrices, which take as long to compile as all the rest."""
    return any(name in text for name in _PRODUCTS)


def _part(name: str, *, loose: bool) -> Path:
    # Looked for each time: what is kept may be removed while this process runs.
    flags = (*RUNTIME[name], *(("-DLOOSE",) if loose and name == "runtime.c" else ()))
    return _made((_HERE / name).read_text(), ".o", flags, ["-c"], [])


def _family(name: str, *, loose: bool) -> Path:
    return _made(_functions().family(name, loose=loose), ".o", FUNCTION_FLAGS, ["-c"], [])


def _functions() -> Any:
    """The elementary functions, which are imported where a library is made."""
    return importlib.import_module("primgraph.codegen.native.functions")


@once
def caller() -> Path:
    """The extension module whose objects call native kernels."""
    flags = (*_FLAGS[:3], "-O2", "-pthread")
    extra = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    text = "".join([(_HERE / name).read_text() for name in ("call.c", "direct.c", "crew.c")])
    ending = importlib.machinery.EXTENSION_SUFFIXES[0]
    return _made(text, ending, (*flags, sys.base_prefix), ["-shared"], extra, _with_headers)


def _with_headers(flags: Sequence[str]) -> list[str]:
    """Flags with those that tell where headers of Python and NumPy are."""
    headers = importlib.import_module("sysconfig").get_paths()["include"]
    if not (Path(headers) / "Python.h").is_file():
        raise UnavailableError(
            f"Python's headers are not in {headers}",
            hint="install them: python3-dev, python3-devel",
        )
    return [*flags[:-1], f"-I{headers}", f"-I{np.get_include()}"]


def _made(
    text: str,
    ending: str,
    flags: Sequence[str],
    kind: Sequence[str],
    others: Sequence[str],
    spelled: Callable[[Sequence[str]], Sequence[str]] = tuple,
) -> Path:
    """The file that the compiler makes of `text`, which may be there already.

    The compiler is given `spelled(flags)`.
    """
    chosen = compiler()
    if chosen is None:
        raise UnavailableError("there is no C compiler", hint="install gcc or clang, or set CC")
    parts = (text, ending, *flags, *kind, *others, *machine(chosen))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
    try:
        folder = cache.usable_folder()
        made = folder / f"{key}{ending}"
        if not cache.is_good(made):
            command = [*chosen.command, *spelled(flags), *chosen.processor, *kind]
            with cache.locked(folder, key, TIME_LIMIT):
                if not cache.is_good(made):
                    with cache.work_in(folder) as work:
                        cache.keep(_compiled(text, command, others, work / f"out{ending}"), made)
                    cache.bound(folder)
        else:
            cache.used(made)
    except OSError as error:
        raise UnavailableError(f"{chosen.name} cannot be used: {error}") from error
    return made


def kept(name: str) -> Path | None:
    """The file of that name which was made before; None if it is not there any more, or damaged."""
    try:
        made = cache.usable_folder() / name
        if cache.is_good(made):
            cache.used(made)
            return made
    except OSError:
        pass
    return None


_stuck: list[str] = []


def _compiled(text: str, command: Sequence[str], others: Sequence[str], out: Path) -> Path:
    """The file `out`, which a compiler makes of `text`."""
    source = out.with_name("kernel.c")
    source.write_text(text)
    if _stuck:
        raise UnavailableError(_stuck[0])
    done = _runner().run([*command, "-o", str(out), str(source), *others], TIME_LIMIT)
    if done is None:
        # It is not waited for again.
        _stuck.append(f"{command[0]} did not end within {TIME_LIMIT} seconds")
        raise UnavailableError(_stuck[0])
    told = done.stderr.strip()[:2000]
    if done.returncode < 0:
        raise UnavailableError(f"{command[0]} was killed by signal {-done.returncode}: {told}")
    if _runner().NO_ROOM.search(told):
        raise UnavailableError(f"{command[0]} has no room: {told}")
    if not source.is_file():
        raise FileNotFoundError(f"{source.parent} was removed")
    if done.returncode or not out.is_file():
        # Names of a folder that is gone tell nothing.
        told = told.replace(f"{source.parent}{os.sep}", "")
        raise FailedError(f"{command[0]} failed on {_kept_for_the_user(text)}:\n{told}", told)
    return out


def _kept_for_the_user(text: str) -> Path:
    number, path = importlib.import_module("tempfile").mkstemp(prefix="primgraph-", suffix=".c")
    with os.fdopen(number, "w") as file:
        file.write(text)
    return Path(path)
