"""Fingerprints of user primitives: equal in two processes only if their functions are equal.

A function is its bytecode with constants, defaults, closure, and the global variables that it
names, which are followed into further functions. Functions of Python's library, NumPy, SciPy and
primgraph are known by name, and by versions and files in the key. Anything else has no fingerprint.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from hashlib import sha256
from types import CodeType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, final

import numpy as np

from primgraph.codegen.ops.families import family_of
from primgraph.codegen.runtime.toolchain.cache import UnknownError
from primgraph.ir.facts.ops import Fact
from primgraph.ir.primitive import Primitive

# Limits: number of objects that functions may lead to, and bytes of an array among them.
_MOST_OBJECTS = 5000
_MOST_BYTES = 1 << 16
# Properties of a primitive that code generation reads; derivative rules are of no use to it.
_READ = (
    "name", "multiple", "commutative", "formal", "is_view", "has_bodies", "elementwise", "moves",
    "literal", "random", "linear", "singular", "constant", "_flops", "impl", "type_rule", "_view",
    "_index_map", "_facts",
)  # fmt: skip
_ATOMS = (NoneType, bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_LIBRARY = os.path.dirname(os.__file__) + os.sep
# Builtins by which a function reads variables that its code does not name.
_DYNAMIC = {"__import__", "eval", "exec", "globals", "locals", "vars"}


def fingerprint(value: Any) -> str:
    """Return a hash of a primitive, or of a value that it uses. Raises `UnknownError`."""
    writer = _Writer()
    writer.add(value)
    return sha256("\n".join(writer.parts).encode(errors="surrogatepass")).hexdigest()


@final
class _Writer:
    """Text of values; `parts` has a line for each, and numbers for what was met before."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._met: dict[int, tuple[int, Any]] = {}

    def add(self, x: Any) -> None:
        if len(self.parts) > _MOST_OBJECTS:
            raise UnknownError("its functions lead to too many others")
        if isinstance(x, _ATOMS):
            self.parts.append(f"{type(x).__name__} {x!r}")
            return
        met = self._met.get(id(x))
        if met is not None:
            self.parts.append(f"met {met[0]}")
            return
        # Of equal tuples a process may have one or several.
        if not isinstance(x, tuple | np.dtype | np.generic):
            self._met[id(x)] = len(self._met), x
        name = _library_name(x)
        if name:
            self.parts.append(name)
            return
        for kind, write in _WRITERS:
            if isinstance(x, kind):
                self.parts.append(kind.__name__)
                write(self, x)
                return
        self._add_record(x)

    def _add_all(self, *values: Any) -> None:
        self.parts.append(str(len(values)))
        for value in values:
            self.add(value)

    def _add_sequence(self, x: tuple[Any, ...]) -> None:
        self._add_all(*x) if type(x) is tuple else self._add_record(x)

    def _add_set(self, x: Any) -> None:
        if not all(isinstance(v, _ATOMS) for v in x):
            raise UnknownError("a set of objects has no order")
        self._add_all(*sorted(x, key=repr))

    def _add_dict(self, x: dict[Any, Any]) -> None:
        self._add_all(*[part for pair in x.items() for part in pair])

    def _add_array(self, x: Any) -> None:
        if x.dtype.hasobject or x.nbytes > _MOST_BYTES:
            raise UnknownError("an array is too large, or has objects in it")
        self._add_all(x.dtype.str, x.shape, x.tobytes())

    def _add_function(self, x: FunctionType) -> None:
        try:
            cells = [cell.cell_contents for cell in x.__closure__ or ()]
        except ValueError:
            raise UnknownError(f"a variable of {x.__qualname__} has no value") from None
        self._add_all(x.__code__, x.__defaults__, x.__kwdefaults__, x.__dict__, *cells)
        for name in sorted(set(_globals_of(x.__code__))):
            if name in x.__globals__:
                self._add_all(name, x.__globals__[name])
            elif name in _DYNAMIC:
                raise UnknownError(f"{x.__qualname__} calls {name}()")

    def _add_code(self, x: CodeType) -> None:
        counts = x.co_argcount, x.co_posonlyargcount, x.co_kwonlyargcount, x.co_flags
        names = x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars
        self._add_all(x.co_code, getattr(x, "co_exceptiontable", b""), x.co_consts, *names, *counts)

    def _add_partial(self, x: functools.partial[Any]) -> None:
        self._add_all(x.func, x.args, x.keywords)

    def _add_method(self, x: MethodType) -> None:
        self._add_all(x.__func__, x.__self__)

    def _add_primitive(self, x: Primitive[Any]) -> None:
        if family_of(x):
            self.add(x.name)
            return
        self._add_all(*[getattr(x, name, None) for name in _READ])
        table = sys.modules.get("primgraph.codegen.ops.table")
        self.add(None if table is None else table.CARDS.get(x))

    def _add_record(self, x: Any) -> None:
        """Add an object of a class of primgraph that has fields: a card, a type, a range."""
        kind = type(x)
        fields = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "_fields", None)
        if fields is None or not _library_name(kind):
            raise UnknownError(f"{kind.__qualname__} objects are unknown to other processes")
        self._add_all(kind, *[getattr(x, name) for name in fields])


_WRITERS: tuple[tuple[type, Callable[[_Writer, Any], None]], ...] = (
    (Primitive, _Writer._add_primitive),
    (FunctionType, _Writer._add_function),
    (CodeType, _Writer._add_code),
    (MethodType, _Writer._add_method),
    (functools.partial, _Writer._add_partial),
    (Fact, lambda writer, x: writer.add(x.name)),
    (Enum, lambda writer, x: writer._add_all(type(x), x.name)),
    (np.dtype, lambda writer, x: writer.add(x.str)),
    (np.ndarray, _Writer._add_array),
    (tuple, lambda writer, x: writer._add_sequence(x)),
    (list, lambda writer, x: writer._add_all(*x)),
    (dict, _Writer._add_dict),
    (frozenset, _Writer._add_set),
    (set, _Writer._add_set),
    (np.generic, lambda writer, x: writer._add_array(np.asarray(x))),
)


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the names of global variables and modules that a function, or one in it, reads."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
        elif step.opname == "IMPORT_NAME" and not _is_library(sys.modules.get(step.argval)):
            raise UnknownError(f"{code.co_name} imports {step.argval}")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def _library_name(x: Any) -> str:
    """Return the full name of an object of a library; "" for others."""
    if isinstance(x, ModuleType):
        return f"module {x.__name__}" if _is_library(x) else ""
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    is_ufunc = isinstance(x, np.ufunc)
    for home in ("numpy", "scipy.special") if is_ufunc else (getattr(x, "__module__", None),):
        found: Any = sys.modules.get(home) if isinstance(home, str) else None
        if not isinstance(name, str) or not _is_library(found):
            continue
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is x:
            return f"{home}:{name}"
    return ""


def _is_library(module: Any) -> bool:
    """Return whether a module belongs to Python, NumPy, SciPy or primgraph."""
    if not isinstance(module, ModuleType):
        return False
    root = module.__name__.partition(".")[0]
    if root in ("numpy", "scipy", "primgraph"):
        return True
    file = getattr(module, "__file__", None)
    own = file is None or (file.startswith(_LIBRARY) and "site-packages" not in file)
    return own and root in sys.stdlib_module_names
