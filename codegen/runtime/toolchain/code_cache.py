"""Cache of generated C, keyed by a digest of the graph.

The C text and the call interface are stored under a hash of the graph and of all inputs of code
generation: the generator's files, the machine, and installed versions. An equal graph then needs no
code generation. Graphs with user primitives or user C are not cached, as only this process knows
what these mean.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.ir.limits import Limits, Options, default_limits
from primgraph.codegen.runtime.toolchain import cache
from primgraph.codegen.runtime.toolchain.cache import UnknownError
from primgraph.codegen.runtime.toolchain.compile_c import Compiler, machine
from primgraph.codegen.runtime.toolchain.graph_keys import (
    digest_of_graph,
    generator_files,
)
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.primitive import Primitive
from primgraph.ir.sizes import names_in_params
from primgraph.ir.types import Shape

# Prefix of the function names in a text, and the name of the function that computes sizes.
NAME = "kernel"
SIZES_OF = f"{NAME}_sizes"
# Number of entries before the sizes, among the numbers computed at call time.
FIRST = 2
# Result modes: a new array, an array that the caller passes, or (>= 0) the input that it
# overwrites.
MADE, HANDED = -1, -2

# Size limit in bytes of constants that are stored because no equation defines them.
_MOST = 1 << 16

Coded = tuple[int, Shape]
Taken = tuple[tuple[int, Shape], ...]


class FunctionInterface(NamedTuple):
    """The call interface of a C function: the arguments of `Native` except addresses and constants.

    A function between others takes and returns values, listed with their shapes as `Told.coded`
    writes them.
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


class NumpyStep(NamedTuple):
    """A step for NumPy: the index of its equation, the values it takes, and those it returns."""

    at: int
    taken: Taken
    values: tuple[int, ...]


@final
class Entry(NamedTuple):
    """The C of a graph and its schedule: C functions, and steps for NumPy in between.

    `library` is the file name of the text, which is compiled in so many `units`. `constants` and
    `outputs` are values, the latter with shapes as `Told.coded` writes them. `tell` computes the
    sizes. A single function does that itself, and returns the outputs.
    """

    text: str
    pieces: tuple[FunctionInterface | NumpyStep, ...]
    constants: tuple[int, ...]
    outputs: Taken
    tell: FunctionInterface | None
    units: int = 1
    library: str = ""

    @property
    def calls(self) -> list[FunctionInterface]:
        """Return the C functions that are called."""
        tell = () if self.tell is None else (self.tell,)
        return [*(p for p in self.pieces if isinstance(p, FunctionInterface)), *tell]

    @property
    def is_alone(self) -> bool:
        """Return whether a single function computes everything."""
        return len(self.pieces) == 1 and isinstance(self.pieces[0], FunctionInterface)


def modes_of(options: Options, outputs: int) -> tuple[int, ...]:
    """Return the mode of each result."""
    donated = dict(options.donated)
    return tuple([donated.get(k, HANDED if k in options.given else MADE) for k in range(outputs)])


def key_of(graph: Graph, options: Options, limits: Limits, compiler: Compiler) -> str | None:
    """Return the cache key of the generated C; None if it is not to be cached."""
    own = default_limits()
    try:
        parts = (
            digest_of_graph(graph),
            repr(options),
            repr((own, None if limits == own else limits)),
            generator_files(),
            *machine(compiler),
        )
    except (UnknownError, OSError):
        return None
    return cache.key_of(*parts)


# Stored entries.


def recall(key: str, graph: Graph) -> tuple[Entry, list[Any]] | None:
    """Return the entry under a key, and its constants; None if missing or invalid."""
    try:
        with cache.usable_folder() as folder:
            content = cache.recall(folder, f"{key}{cache.GRAPH}")
        if content is None:
            return None
        head, _, text = content.partition(b"\n")
        pieces, values, outputs, tell, units, library, sources = _tuples(json.loads(head))
        entry = Entry(
            text.decode(),
            tuple([FunctionInterface(*p) if type(p[0]) is str else NumpyStep(*p) for p in pieces]),
            values,
            outputs,
            None if tell is None else FunctionInterface(*tell),
            units,
            library,
        )
        constants = _read_constants(sources, graph)
    except (OSError, ValueError):
        return None
    return entry, constants


def is_stored(key: str) -> bool:
    """Return whether the cache has the entry under a key, and its compiled file."""
    with contextlib.suppress(OSError, ValueError), cache.usable_folder() as folder:
        content = cache.recall(folder, f"{key}{cache.GRAPH}")
        return content is not None and folder.has(json.loads(content.partition(b"\n")[0])[-2])
    return False


def remember(key: str, graph: Graph, entry: Entry, constants: Sequence[Any]) -> None:
    """Store an entry, if possible."""
    sources = _sources(constants, graph)
    if sources is None:
        return
    head = json.dumps([*entry[1:], sources], default=int)
    content = f"{head}\n{entry.text}".encode()
    with contextlib.suppress(OSError), cache.usable_folder() as folder:
        cache.keep(folder, f"{key}{cache.GRAPH}", content)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if type(value) is list else value


# Constants: most are defined by equations without operands, and need not be stored twice.


def _literals(graph: Graph) -> Iterator[Equation]:
    """Yield all equations without operands or symbolic sizes, also in bodies."""
    for e in graph.body:
        if e.op.has_bodies:
            for body in e.bodies:
                yield from _literals(body)
        elif isinstance(e.op, Primitive) and e.op.literal and not names_in_params(e.params):
            yield e


def _literal_array(eqn: Equation) -> Any:
    assert isinstance(eqn.op, Primitive)
    return np.ascontiguousarray(eqn.op.impl(**eqn.kwargs))


def _identity(array: Any) -> tuple[Any, ...]:
    return array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest()


def _sources(constants: Sequence[Any], graph: Graph) -> list[Any] | None:
    """Return a source for each constant: the index of a literal equation, or its bytes.

    Return None if the bytes exceed the limit.
    """
    types = {(a.dtype, a.size) for a in constants}
    literals = enumerate(_literals(graph) if constants else ())
    wanted = [(k, e) for k, e in literals if (e.output.dtype, e.output.type.size) in types]
    places = {_identity(_literal_array(e)): k for k, e in wanted}
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
            found.append(_literal_array(literals[source]))
        else:
            dtype, shape, data = source
            found.append(np.frombuffer(base64.b64decode(data), dtype).reshape(shape))
    return found
