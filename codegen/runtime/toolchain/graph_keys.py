"""Keys of graphs in the disk cache: digests of their structure and of the generator's files."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import cache as once
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph import ir, primitives
from primgraph.base.providers import late
from primgraph.codegen.ops.families import family_of
from primgraph.codegen.runtime.toolchain.cache import UnknownError
from primgraph.ir import LOADED
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array
from primgraph.ir.primitive import Op
from primgraph.ir.text import value_text
from primgraph.ir.types import TensorType
from primgraph.primitives.control import CONTROL

if TYPE_CHECKING:
    from primgraph.codegen.runtime import lapack
    from primgraph.codegen.runtime.toolchain import fingerprint
else:
    lapack = late("primgraph.codegen.runtime.lapack")
    fingerprint = late("primgraph.codegen.runtime.toolchain.fingerprint")

# Primitives with user C: its text, functions and dtypes.
spelled: dict[Op, tuple[str, ...]] = {}

# An include directive for a file of the user.
_LOCAL_HEADER = re.compile(r'#\s*include\s*"')

# Primitives whose C depends on whether this process finds LAPACK.
_FAR = frozenset((
    "linear_algebra.systems", "linear_algebra.cholesky", "linear_algebra.spectra",
    "linear_algebra.matrix_functions",
))  # fmt: skip


def digest_of_graph(graph: Graph) -> str:
    """Return a hash of the graph's structure: equal graphs have equal hashes."""
    number: dict[Value, int] = {}
    places: dict[str, int] = {}
    known: dict[Any, int] = {}
    wiring: list[int] = []
    for v in graph.inputs:
        number[v] = len(number)
        wiring.append(places.setdefault(str(v.type), len(places)))
    for e in graph.body:
        inputs, outputs = e.inputs, e.outputs
        types: Any = outputs[0].type if len(outputs) == 1 else tuple([v.type for v in outputs])
        # In derivatives the sign of a zero is free, so that their C may differ.
        derived = e.is_derived
        # Equal parameters are usually one object.
        key = e.op, id(e.params), types, len(inputs), derived
        at = known.get(key)
        if at is None:
            text = f"{_equation_key(e)}{' derived' if derived else ''}"
            at = known[key] = places.setdefault(text, len(places))
        wiring.append(at)
        wiring += [number[v] for v in inputs]
        for v in outputs:
            number[v] = len(number)
    wiring.append(-1)
    wiring += [number[v] for v in graph.outputs]
    found = hashlib.sha256("\n".join(places).encode())
    found.update(array("q", wiring).tobytes())
    return found.hexdigest()


def _equation_key(eqn: Equation) -> str:
    op = eqn.op
    family = family_of(op)
    user = _user_key(op) if _is_of_user(op) else ""
    params = ",".join([f"{name}={_text(value)}" for name, value in eqn.params])
    types = ",".join([str(v.type) for v in eqn.outputs])
    library = " with LAPACK" if family in _FAR and lapack.lapack() is not None else ""
    return f"{op.name}({params}){len(eqn.inputs)}:{types}{library}{user}"


def _is_of_user(op: Op) -> bool:
    return op in spelled or not (family_of(op) or op in CONTROL)


def is_of_users(graph: Graph) -> bool:
    """Return whether code of a graph depends on primitives, or on C, that a user has declared."""
    return any(_is_of_user(e.op) or any(map(is_of_users, e.bodies)) for e in graph.body)


def _user_key(op: Op) -> str:
    """Return the part of a key that tells what the functions and the C of a user primitive are."""
    c = spelled.get(op, ())
    if any(_LOCAL_HEADER.search(text) for text in c):
        raise UnknownError(f"the C of {op.name} includes a file")
    try:
        own = fingerprint.fingerprint(op)
    except UnknownError as error:
        raise UnknownError(f"primitive {op.name}: {error}") from None
    scipy = getattr(sys.modules.get("scipy"), "__version__", "")
    return f" {own} {c!r} {scipy} {package_files()}"


def reason_unknown(graph: Graph) -> str:
    """Return why code of a graph is not kept on disk; "" if it may be."""
    try:
        digest_of_graph(graph)
    except UnknownError as error:
        return str(error)
    return ""


# Types of parameters whose text distinguishes values bit by bit.
_KNOWN = (int, str, NoneType, float, complex, Dim, Array, TensorType, np.dtype)


def _text(value: Any) -> str:
    """Return a parameter as text that distinguishes values bit by bit."""
    if isinstance(value, tuple):
        return f"({' '.join(map(_text, value))})"
    if isinstance(value, Graph):
        return f"<{digest_of_graph(value)}>"
    return value_text(value) if isinstance(value, _KNOWN) else fingerprint.fingerprint(value)


@once
def generator_files() -> str:
    """Return a hash of the files that code generation depends on.

    Raise if one was changed after this process loaded it, as the loaded version is unknown.
    """
    return _hash_of_files((str(Path(__file__).parents[2]), *ir.__path__, *primitives.__path__))


@once
def package_files() -> str:
    """Return a hash of the files of the package, which user primitives may call."""
    return _hash_of_files(sys.modules["primgraph"].__path__)


def _hash_of_files(folders: Iterable[str]) -> str:
    found = hashlib.sha256()
    for folder in folders:
        for path, status in sorted(_files(folder)):
            found.update(f"{path}\0{status}\n".encode(errors="surrogatepass"))
    return found.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, str]]:
    with os.scandir(folder) as found:
        files = [*found]
    for file in files:
        if file.name.endswith((".py", ".c")):
            s = file.stat()
            if s.st_ctime > LOADED:
                raise UnknownError(f"{file.path} has changed since it was loaded")
            yield file.path, f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"
        elif file.is_dir() and file.name != "__pycache__":
            yield from _files(file.path)
