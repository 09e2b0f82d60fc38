"""What C was written of a graph before, found by what the graph is.

A text of C, and how its functions are called, is kept in the cache folder under the hash of the
graph and of all that writing depends on: the code that writes, the machine, and what is installed
there. Whoever compiles an equal graph writes nothing then. Graphs with primitives of the user's, or
with C of the user's in them, are not kept: what these mean is known to this process alone.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from array import array
from collections.abc import Iterator, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph import ir, primitives
from primgraph.codegen.cards.linear_algebra import matrix_functions, spectra, systems
from primgraph.codegen.cards.table import OWN
from primgraph.codegen.native.toolchain import cache
from primgraph.codegen.native.toolchain.compile_c import Compiler, machine
from primgraph.codegen.plan.program import Options
from primgraph.codegen.plan.storage.limits import Limits, default_limits
from primgraph.ir import LOADED
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import Array
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.sizes import names_in_params
from primgraph.ir.types import NAME_OF_DTYPE, Shape, TensorType
from primgraph.primitives.control import CONTROL

# Primitives that the user has given C.
spelled: set[Op] = set()

# How a text begins the names of its functions, and what it calls that which finds sizes.
NAME = "kernel"
SIZES_OF = f"{NAME}_sizes"
# Before the sizes, of numbers that a call finds.
FIRST = 2
# What becomes of a result: a new array, or one that is handed; else the input that it overwrites.
MADE, HANDED = -1, -2

# Primitives whose C depends on what libraries this process finds.
_APART = frozenset({*systems.CARDS, *spectra.CARDS, *matrix_functions.CARDS})
_OWN = (OWN | CONTROL) - _APART
# The most bytes of constants that no equation tells.
_MOST = 1 << 16

Coded = tuple[int, Shape]
Taken = tuple[tuple[int, Shape], ...]


class Called(NamedTuple):
    """How a function of C is called: what `Native` is made of, but for addresses and constants.

    Between others it takes and gives values: those, and their shapes as `Told.coded` has them.
    """

    name: str
    inputs: tuple[Coded, ...]
    results: tuple[Coded, ...]
    places: tuple[int, ...]
    modes: tuple[int, ...]
    arena: int
    alone: bool
    releases: bool
    finds: bool
    numbers: int
    taken: Taken = ()
    values: tuple[int, ...] = ()


class Left(NamedTuple):
    """A step of NumPy's: the place of its equation, and the values that it takes and gives."""

    at: int
    taken: Taken
    values: tuple[int, ...]


@final
class Entry(NamedTuple):
    """The C of a graph, and what is done with it: functions of C, and steps of NumPy's between.

    `library` is the name of the file that the text was compiled to.
    `constants` and `outputs` are values, of outputs with their shapes as `Told.coded` has them.
    `tell` finds the numbers of sizes. Where there is one function alone, it does that itself, and
    gives the outputs.
    """

    text: str
    pieces: tuple[Called | Left, ...]
    constants: tuple[int, ...]
    outputs: Taken
    tell: Called | None
    library: str = ""

    @property
    def calls(self) -> list[Called]:
        """The functions of C that are called."""
        tell = () if self.tell is None else (self.tell,)
        return [*(p for p in self.pieces if isinstance(p, Called)), *tell]

    @property
    def is_alone(self) -> bool:
        """Whether it is one function that does all."""
        return len(self.pieces) == 1 and isinstance(self.pieces[0], Called)


def modes_of(options: Options, outputs: int) -> tuple[int, ...]:
    """What becomes of each result."""
    donated = dict(options.donated)
    return tuple([donated.get(k, HANDED if k in options.given else MADE) for k in range(outputs)])


# What a graph is.


class _UnknownError(Exception):
    """There is something that another process would not know."""


def key_of(graph: Graph, options: Options, limits: Limits, compiler: Compiler) -> str | None:
    """The hash that tells apart what C is written for; None for what is not to be kept."""
    own = default_limits()
    try:
        parts = (
            _digest(graph),
            repr(options),
            repr((own, None if limits == own else limits)),
            _writers(),
            *machine(compiler),
        )
    except (_UnknownError, OSError):
        return None
    return cache.key_of(*parts)


def _digest(graph: Graph) -> str:
    """A hash of what is computed, and how: all that equal graphs have in common."""
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
        # Equal parameters are mostly one object.
        key = e.op, id(e.params), types, len(inputs)
        at = known.get(key)
        if at is None:
            at = known[key] = places.setdefault(_told(e), len(places))
        wiring.append(at)
        wiring += [number[v] for v in inputs]
        for v in outputs:
            number[v] = len(number)
    wiring.append(-1)
    wiring += [number[v] for v in graph.outputs]
    found = hashlib.sha256("\n".join(places).encode())
    found.update(array("q", wiring).tobytes())
    return found.hexdigest()


def _told(eqn: Equation) -> str:
    op = eqn.op
    if op not in _OWN or op in spelled:
        raise _UnknownError
    params = ",".join([f"{name}={_text(value)}" for name, value in eqn.params])
    types = ",".join([str(v.type) for v in eqn.outputs])
    return f"{op.name}({params}){len(eqn.inputs)}:{types}"


def _text(value: Any) -> str:
    """A parameter as text, which is another one for whatever differs by a bit."""
    kind = type(value)
    if kind in (int, bool, str) or value is None:
        return repr(value)
    if kind is tuple:
        return f"({' '.join(map(_text, value))})"
    if type(value) is float:
        return value.hex()
    if kind is complex:
        return f"{value.real.hex()}+{value.imag.hex()}j"
    if kind is Dim:
        return f"[{value}]"
    if kind is Array:
        return f"<{value.digest}>"
    if kind is TensorType:
        return f"<{value}>"
    if kind is Graph:
        return f"<{_digest(value)}>"
    if isinstance(value, np.dtype):
        return f"<{NAME_OF_DTYPE[value]!s}>"
    raise _UnknownError


@once
def _writers() -> str:
    """A hash that is another one as soon as a file is changed that writing C depends on.

    Where one was changed while this process ran, nobody knows what it would be the hash of.
    """
    found = hashlib.sha256()
    for folder in (str(Path(__file__).parents[1]), *ir.__path__, *primitives.__path__):
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
                raise _UnknownError
            yield file.path, f"{s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}"
        elif file.is_dir() and file.name != "__pycache__":
            yield from _files(file.path)


# What is kept.


def recall(key: str, graph: Graph) -> tuple[Entry, list[Any]] | None:
    """Return the entry under a key, and its constants; None if there is none as it was written."""
    try:
        with cache.usable_folder() as folder:
            content = cache.recall(folder, f"{key}{cache.GRAPH}")
        if content is None:
            return None
        head, _, text = content.partition(b"\n")
        pieces, values, outputs, tell, library, sources = _tuples(json.loads(head))
        entry = Entry(
            text.decode(),
            tuple([Called(*p) if type(p[0]) is str else Left(*p) for p in pieces]),
            values,
            outputs,
            None if tell is None else Called(*tell),
            library,
        )
        constants = _read_constants(sources, graph)
    except (OSError, ValueError):
        return None
    return entry, constants


def remember(key: str, graph: Graph, entry: Entry, constants: Sequence[Any]) -> None:
    """Keep an entry, if that can be."""
    sources = _sources(constants, graph)
    if sources is None:
        return
    head = json.dumps([*entry[1:], sources], default=int)
    content = f"{head}\n{entry.text}".encode()
    with contextlib.suppress(OSError), cache.usable_folder() as folder:
        cache.keep(folder, f"{key}{cache.GRAPH}", content)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if type(value) is list else value


# Constants: most are those of equations without operands, which need not be kept twice.


def _literals(graph: Graph) -> Iterator[Equation]:
    """All equations without operands or sizes, in a graph and in the graphs in it."""
    for e in graph.body:
        if e.op.has_bodies:
            for body in e.bodies:
                yield from _literals(body)
        elif isinstance(e.op, Primitive) and e.op.literal and not names_in_params(e.params):
            yield e


def _made(eqn: Equation) -> Any:
    assert isinstance(eqn.op, Primitive)
    return np.ascontiguousarray(eqn.op.impl(**eqn.kwargs))


def _identity(array: Any) -> tuple[Any, ...]:
    return array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest()


def _sources(constants: Sequence[Any], graph: Graph) -> list[Any] | None:
    """What each constant can be made of again: a place among literals, or its bytes.

    None where these would be too many.
    """
    types = {(a.dtype, a.size) for a in constants}
    literals = enumerate(_literals(graph) if constants else ())
    wanted = [(k, e) for k, e in literals if (e.output.dtype, e.output.type.size) in types]
    places = {_identity(_made(e)): k for k, e in wanted}
    found: list[Any] = []
    for a in constants:
        at = places.get(_identity(a))
        if at is None and a.nbytes > _MOST:
            return None
        data = (a.dtype.str, a.shape, base64.b64encode(a.tobytes()).decode())
        found.append(data if at is None else at)
    return found


def _read_constants(sources: Sequence[Any], graph: Graph) -> list[Any]:
    literals = list(_literals(graph)) if sources else []
    found = []
    for source in sources:
        if type(source) is int:
            found.append(_made(literals[source]))
        else:
            dtype, shape, data = source
            found.append(np.frombuffer(base64.b64decode(data), dtype).reshape(shape))
    return found
