"""Compilation of C, with a cache keyed by content that is shared between processes.

The compiler is `$CC`, or the first of `cc`, `gcc` and `clang` on the path. Its output is kept in
the user's cache folder. The key is a hash of the source, the compiler and its version, the flags
and the processor. Code is generated for the processor of this machine, unless `$CC` has options
that name another one, such as `gcc -march=x86-64`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.base.journal import FROM_CACHE, FROM_COMPILER, note_source
from primgraph.base.user_lines import caller as user_line
from primgraph.codegen.runtime.toolchain import cache
from primgraph.codegen.runtime.toolchain.cache import Stored
from primgraph.codegen.runtime.toolchain.folder import Folder
from primgraph.errors import CompileError

_HERE = Path(__file__).parents[2] / "targets" / "c"

# Workaround for a bug of GCC 12: in leaf functions it may undo the alignment of the stack for
# vectors, although it accesses arrays there as aligned, through other registers. Without a red zone
# these frames are aligned as well.
_STACK = ("-mno-red-zone",) if platform.machine() in ("x86_64", "AMD64") else ()
# NaN, infinities and the order of sums keep their semantics.
_FLAGS = (
    *("-std=c11", "-fPIC", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-march=native"),
    *_STACK,
)
_VECTORS = ("-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic")
# Flags of units of a long file: compile time is half, and the code of loops is as fast. GCC alone
# knows the second one: constant propagation, of which straight-line code has none left.
_LONG_FILE, _LONG_FILE_GCC = ("-O1",), ("-fno-tree-ccp",)
# Version messages of GCC: "gcc (GCC) 13.2.0", whatever the command is called.
_GCC = re.compile(r"\S+ \([^)]*\) \d+\.")
# Flags of kernels: products and sums are not contracted to FMA.
KERNEL_FLAGS = (*_FLAGS, *_VECTORS, "-ffp-contract=off")
# Flags of kernels in which they may be contracted everywhere.
LOOSE_FLAGS = (*_FLAGS, *_VECTORS, "-ffp-contract=fast", "-DLOOSE")
# Workaround for a bug of GCC 12: it drops the conversion of adjacent doubles to float and back,
# unless SLP vectorisation is off.
_NARROWED, _ONE_BY_ONE = "(float)", ("-fno-tree-slp-vectorize",)
RUNTIME_FLAGS = (*_FLAGS, "-O3", "-ffp-contract=fast")
PRODUCT_FLAGS = (*_FLAGS, *_VECTORS, "-ffp-contract=fast")
_PRODUCTS = ("pg_matmul_", "pg_onto_", "pg_product_", "pg_added_")
# For elementary functions, whose rounding is explicit: branches that clamp arguments must not be
# threaded out.
FUNCTION_FLAGS = (
    *_FLAGS,
    "-O2",
    "-ftree-vectorize",
    "-fno-thread-jumps",
    "-ffp-contract=off",
)

# Maximum time of one compiler run, in seconds.
TIME_LIMIT = 300


class UnavailableError(CompileError):
    """Nothing can be compiled on this machine now, whatever the source is.

    There is no compiler, it was killed or timed out, or there is no space for its output.
    """


@final
class FailedError(CompileError):
    """A compiler has rejected its source; `told` is its message."""

    def __init__(self, message: str, told: str) -> None:
        super().__init__(message)
        self.told = told


class Compiler(NamedTuple):
    """The command line of a compiler, and its version message."""

    command: tuple[str, ...]
    version: str

    @property
    def name(self) -> str:
        return " ".join(self.command)

    @property
    def processor(self) -> tuple[str, ...]:
        """Return the options that choose a processor; the last one is in effect."""
        return tuple([option for option in self.command[1:] if option.startswith("-m")])


@once
def compiler() -> Compiler | None:
    """Return the compiler of this machine; None, with one warning, if there is none."""
    there = find_compiler()
    if there is None:
        names = ", ".join(_names())
        why = f"no C compiler ({names}) is to be found"
        if any(_path_of(name) for name in _names()):
            why = f"the C compiler {names} does not work: '{names} --version' fails"
        place = user_line()
        text = f"{why}: native kernels are NumPy's instead"
        warnings.warn_explicit(text, RuntimeWarning, place.file, place.line)
    return there


def _names() -> list[str]:
    wanted = os.environ.get("CC")
    return [wanted] if wanted else ["cc", "gcc", "clang"]


@once
def find_compiler() -> Compiler | None:
    """Return the compiler of this machine; None if there is none."""
    for name in _names():
        command = _path_of(name)
        if command is None:
            continue
        path, options = command
        version = _version(path)
        if version is not None:
            return Compiler((path, *options), version)
    return None


def _path_of(name: str) -> tuple[str, list[str]] | None:
    """Return the path of the command in CC, and its options; None if there is none."""
    try:
        first, *options = importlib.import_module("shlex").split(name) or [""]
    except ValueError:
        # A quotation without an end.
        return None
    path = _which(first)
    return None if path is None else (path, options)


def _which(command: str) -> str | None:
    """Return the path of a command, as a shell finds it."""
    if os.name != "posix":
        return str(importlib.import_module("shutil").which(command) or "") or None
    folders = os.get_exec_path() if os.path.basename(command) == command else [""]
    for folder in folders:
        path = os.path.join(folder, command)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _version(path: str) -> str | None:
    """Return the version message of a compiler, cached while its file is unchanged."""
    try:
        status = os.stat(path)
        told = (path, str(status.st_size), str(status.st_mtime_ns), str(status.st_ino))
        record = f"compiler-{cache.key_of(*told)}"
        with cache.usable_folder() as folder:
            known = cache.recall(folder, record)
            if known is not None:
                return known.decode(errors="replace")
            done = _runner().run([path, "--version"], _ASKING)
            if done is None or done.returncode:
                return None
            version = str(next(iter(done.stdout.splitlines()), path))
            with contextlib.suppress(OSError):
                cache.keep(folder, record, version.encode(errors="replace"))
            return version
    except OSError:
        return None


# Timeout of the version query, in seconds.
_ASKING = 20


def _runner() -> Any:
    """Return the module that runs compilers, imported lazily."""
    return importlib.import_module("primgraph.codegen.runtime.toolchain.run_compiler")


@once
def _processor() -> str:
    """Return a description of the processor that determines its native code."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                return line.rstrip("\n")
    return platform.processor() or platform.machine()


def machine(chosen: Compiler) -> tuple[str, ...]:
    """Return the parts of the cache key that describe the machine and its installed versions."""
    return *chosen.command, chosen.version, _processor(), sys.version, np.__version__


def fault_of(text: str) -> str:
    """Return the compiler's diagnostics for the C in `text`; empty if it compiles."""
    found = compiler()
    assert found is not None
    flags = ("-std=c11", "-fsyntax-only", "-Werror=implicit-function-declaration", "-xc", "-")
    done = _runner().run([*found.command, *flags], TIME_LIMIT, text)
    if done is None:
        return "it did not end"
    return (done.stderr.strip() or "it failed")[:2000] if done.returncode else ""


def library(text: str, *, runtime: bool = True, loose: bool = False, units: int = 1) -> Stored:
    """Compile the C in `text` to a shared library, with the runtime in it.

    With several `units` each is compiled by itself, as `-DUNIT=k`, on all processors.

    If `loose`, functions are accurate to four units in the last place, products are evaluated in
    any order, and FMA contraction is allowed.

    Raises `UnavailableError` if nothing can be compiled, and `CompileError` with the compiler's
    message if it fails.
    """
    flags = (*(LOOSE_FLAGS if loose else KERNEL_FLAGS), *(_ONE_BY_ONE if _NARROWED in text else ()))
    parts = _runtime_parts(text, loose=loose) if runtime else ()
    beside = (_caller_part(),) if runtime and not caller.cache_info().currsize else ()
    part = _Part(text, ".so", flags, ("-shared",), ("-lm",))
    return _build(part, parts, beside=beside, units=units)


def forget_library(stored: Stored, text: str, *, loose: bool = False) -> None:
    """Remove a library of `text` that cannot be loaded, and its parts, from the cache."""
    chosen = compiler()
    assert chosen is not None
    parts = [*_runtime_parts(text, loose=loose), _caller_part()]
    cache.forget(stored.name, *[part.name(chosen) for part in parts])


def _runtime_parts(text: str, *, loose: bool) -> Iterator[_Part]:
    """Yield the parts of the runtime that C calls: a function each, but for products."""
    functions: Any = importlib.import_module("primgraph.codegen.ops.c.functions")
    flags = (*RUNTIME_FLAGS, *(("-DLOOSE",) if loose else ()))
    yield _Part((_HERE / "runtime.c").read_text(), ".o", RUNTIME_FLAGS)
    if has_products(text):
        yield _Part((_HERE / "products.c").read_text(), ".o", PRODUCT_FLAGS)
    for name in functions.reductions(text):
        yield _Part(functions.reduction(name), ".o", flags)
    for name in functions.elementary_functions(text):
        yield _Part(functions.elementary_function(name, loose=loose), ".o", FUNCTION_FLAGS)


def has_products(text: str) -> bool:
    """Return whether C calls matrix products, which take as long to compile as all the rest."""
    return any(name in text for name in _PRODUCTS)


class _Part(NamedTuple):
    """The source of a file to be compiled, its ending, and the options of the compiler.

    `kind` says what is made, and `libraries` follow all files. An extension module needs headers.
    """

    text: str
    ending: str
    flags: tuple[str, ...]
    kind: tuple[str, ...] = ("-c",)
    libraries: tuple[str, ...] = ()
    is_extension: bool = False

    def command(self, chosen: Compiler) -> list[str]:
        """Return the command line, without the files."""
        headers = _headers() if self.is_extension else ()
        return [*chosen.command, *self.flags, *headers, *chosen.processor, *self.kind]

    def key(self, chosen: Compiler, parts: Sequence[_Part] = ()) -> str:
        """Return the key of the result in the cache, with `parts` linked to it."""
        names = [part.name(chosen) for part in parts]
        words = (*self.flags, *self.kind, *names, *self.libraries)
        return cache.key_of(self.text, self.ending, *words, *machine(chosen))

    def name(self, chosen: Compiler) -> str:
        return f"{self.key(chosen)}{self.ending}"


@once
def caller() -> Stored:
    """Return the extension module whose objects call native kernels."""
    return _build(_caller_part())


def _caller_part() -> _Part:
    # The folder of Python stands for its headers in the cache key.
    flags = (*_FLAGS[:3], "-O1", "-pthread", f"-DPYTHON={sys.base_prefix}")
    extra = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    text = "".join([(_HERE / name).read_text() for name in ("call.c", "direct.c", "crew.c")])
    ending = importlib.machinery.EXTENSION_SUFFIXES[0]
    return _Part(text, ending, flags, ("-shared",), tuple(extra), is_extension=True)


def _headers() -> list[str]:
    """Return the include paths of Python and NumPy."""
    headers = importlib.import_module("sysconfig").get_paths()["include"]
    if not (Path(headers) / "Python.h").is_file():
        raise UnavailableError(
            f"Python's headers are not in {headers}",
            hint="install them: python3-dev, python3-devel",
        )
    return [f"-I{headers}", f"-I{np.get_include()}"]


def _build(
    part: _Part, parts: Iterable[_Part] = (), *, beside: Sequence[_Part] = (), units: int = 1
) -> Stored:
    """Compile `part` and link `parts` to it, or return the result from the cache.

    Parts `beside` it are compiled meanwhile if they are not in the cache.
    """
    parts = [*parts]
    chosen = compiler()
    if chosen is None:
        raise UnavailableError("there is no C compiler", hint="install gcc or clang, or set CC")
    key = part.key(chosen, parts)
    name = f"{key}{part.ending}"
    try:
        with cache.usable_folder() as folder:
            content = cache.recall(folder, name)
            if content is not None:
                note_source(FROM_CACHE)
                return Stored(name, content)
            with cache.lock_key(folder, key, TIME_LIMIT):
                content = cache.recall(folder, name)
                if content is None:
                    with folder.work() as work:
                        content = _compile(part, parts, beside, folder, work, units)
                    # The result is usable even if it cannot be stored.
                    with contextlib.suppress(OSError):
                        cache.keep(folder, name, content)
            # One key in 16 inspects all files, which takes 0.2 s where there are 50,000.
            if key.startswith("0"):
                with contextlib.suppress(OSError):
                    cache.evict_files(folder)
    except OSError as error:
        raise UnavailableError(f"{chosen.name} cannot be used: {error}") from error
    return Stored(name, content)


def load_cached(name: str) -> Stored | None:
    """Return the file of that name from the cache; None if it is missing or damaged."""
    with contextlib.suppress(OSError), cache.usable_folder() as folder:
        content = cache.recall(folder, name)
        return None if content is None else Stored(name, content)
    return None


_stuck: list[str] = []

_SOURCE = "kernel.c"


def _compile(
    part: _Part,
    parts: Sequence[_Part],
    beside: Sequence[_Part],
    folder: Folder,
    work: Folder,
    units: int,
) -> bytes:
    """Compile `part` in the folder `work`, and link `parts`; return the result.

    Parts that are not in the cache are compiled as well, and kept, side by side with the units;
    those `beside` it first, as they take longest.
    """
    if _stuck:
        raise UnavailableError(_stuck[0])
    note_source(FROM_COMPILER)
    chosen = compiler()
    assert chosen is not None
    out = f"out{part.ending}"
    source, target = (os.path.join(work.path, name) for name in (_SOURCE, out))
    work.write(_SOURCE, part.text.encode())
    objects, missing = _objects_of([*beside, *parts], chosen, folder, work)
    command = part.command(chosen)
    if units > 1 or missing:
        first = [*command[: -len(part.kind)], *(_long_file_flags() if units > 1 else ()), "-c"]
        made = [os.path.join(work.path, f"unit{k}.o") for k in range(units)]
        jobs = [*missing.values()]
        # Short jobs go last.
        jobs[len(beside) : len(beside)] = [
            (part, [*first, *([f"-DUNIT={k}"] if units > 1 else []), "-o", unit, source])
            for k, unit in enumerate(made)
        ]
        done = _runner().run_all([words for _, words in jobs], TIME_LIMIT, work.path)
        place, result = done[-1]
        _check(result, chosen, jobs[place][0], work)
        for name in missing:
            content = work.read_output(name)
            with contextlib.suppress(OSError):
                cache.keep(folder, name, content or b"")
    else:
        made = [source]
    words = [*command, "-o", target, *made, *objects[len(beside) :], *part.libraries]
    told = _check(_runner().run(words, TIME_LIMIT, folder=work.path), chosen, part, work)
    found = work.read_output(out)
    if found is None:
        raise _failed(chosen, part, told)
    return found


def _long_file_flags() -> tuple[str, ...]:
    """Return the flags of units of a long file."""
    chosen = compiler()
    is_gcc = chosen is not None and _GCC.match(chosen.version)
    return (*_LONG_FILE, *(_LONG_FILE_GCC if is_gcc else ()))


def _objects_of(
    parts: Sequence[_Part], chosen: Compiler, folder: Folder, work: Folder
) -> tuple[list[str], dict[str, tuple[_Part, list[str]]]]:
    """Copy `parts` to the folder `work`; return their paths, and missing ones with commands."""
    objects: list[str] = []
    missing: dict[str, tuple[_Part, list[str]]] = {}
    for k, part in enumerate(parts):
        name = part.name(chosen)
        objects.append(os.path.join(work.path, name))
        content = cache.recall(folder, name)
        if content is not None:
            work.write(name, content)
            continue
        work.write(f"part{k}.c", part.text.encode())
        source = os.path.join(work.path, f"part{k}.c")
        missing[name] = part, [*part.command(chosen), "-o", objects[-1], source, *part.libraries]
    return objects, missing


def _check(done: Any, chosen: Compiler, part: _Part, work: Folder) -> str:
    """Raise the error of a run of the compiler, if it failed; return its message."""
    if done is None:
        # A compiler that timed out is not run again.
        _stuck.append(f"{chosen.command[0]} did not end within {TIME_LIMIT} seconds")
        raise UnavailableError(_stuck[0])
    told = str(done.stderr.strip()[:2000])
    if done.returncode < 0:
        raise UnavailableError(
            f"{chosen.command[0]} was killed by signal {-done.returncode}: {told}"
        )
    if _runner().NO_ROOM.search(told):
        raise UnavailableError(f"{chosen.command[0]} has no room: {told}")
    if not os.path.isfile(os.path.join(work.path, _SOURCE)):
        raise FileNotFoundError(f"{work.path} was removed")
    if done.returncode and not told:
        # A compiler that rejects its source prints a message.
        raise UnavailableError(f"{chosen.command[0]} failed without a message: is a disk full?")
    # The names of a removed folder are useless.
    told = told.replace(f"{work.path}{os.sep}", "")
    if done.returncode:
        raise _failed(chosen, part, told)
    return told


def _failed(chosen: Compiler, part: _Part, told: str) -> FailedError:
    return FailedError(f"{chosen.command[0]} failed{_kept_for_the_user(part.text)}:\n{told}", told)


def _kept_for_the_user(text: str) -> str:
    """Write the rejected source to a file, and return its path."""
    try:
        number, path = importlib.import_module("tempfile").mkstemp(prefix="primgraph-", suffix=".c")
        with os.fdopen(number, "wb") as file:
            file.write(text.encode())
    except OSError:
        return ""
    return f" on {path}"
