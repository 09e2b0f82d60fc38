"""Entries of the disk cache with NumPy code: text, and what CPython compiled of it.

An equal graph then needs no plan, no text and no compilation. Code objects are stored by `marshal`,
whose format belongs to one version of Python, which is a part of the key. Entries are as private,
and as protected by checksums, as compiled C.
"""

from __future__ import annotations

import contextlib
import itertools
import marshal
import sys
from collections.abc import Sequence
from importlib.util import MAGIC_NUMBER
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from primgraph.base.debug_mode import debugging
from primgraph.base.journal import FROM_DISK, note_source
from primgraph.base.providers import late
from primgraph.codegen.bodies import Bodies, object_of, runtime_object, step_of
from primgraph.codegen.compiled import Compiled, Job, generate_later
from primgraph.codegen.ir.limits import default_limits
from primgraph.codegen.load import Loaded, Text, recall_module
from primgraph.codegen.runtime.toolchain import cache
from primgraph.codegen.runtime.toolchain.cache import UnknownError
from primgraph.codegen.runtime.toolchain.folder import open_private
from primgraph.codegen.runtime.toolchain.graph_keys import (
    digest_of_graph,
    generator_files,
)
from primgraph.codegen.targets.text.module import Module
from primgraph.ir.graph import Equation, Graph

if TYPE_CHECKING:
    from primgraph.codegen.runtime import blas
else:
    blas = late("primgraph.codegen.runtime.blas")

# Process time in seconds of generating code for which an entry is written. Writing takes as long,
# but without an entry another process imports the planner, in 30 ms.
_LEAST = 0.0003
# Number of entries that this process has written, each so many of which raise the least time by
# itself: a process with thousands of graphs has others the next time.
_written = itertools.count()
_MANY = 100
# The name of the function that scalar code consists of.
_SCALAR = "scalar"


@final
class Entry(NamedTuple):
    """A compiled module, and what it refers to: indices of equations in the body of its graph.

    `equations` are those of its steps. `objects` are names and the equations that they stand for,
    `runtime` names of the runtime. `users` tells that user functions are called, `products` that
    blocks have products. Threads share these if BLAS `is_controlled`.
    """

    text: Text
    equations: tuple[int, ...] = ()
    objects: tuple[tuple[str, int], ...] = ()
    runtime: tuple[str, ...] = ()
    users: bool = False
    products: bool = False
    is_controlled: bool = False


def key_of(job: Job) -> str | None:
    """Return the key of the entry for a job; None if it has none."""
    if job.clocks is not None:
        return None
    own = default_limits()
    limits = None if job.limits == own else job.limits
    return _key("planned", job.part, repr(job.options), repr((own, limits)))


def key_of_trips(body: Graph, consts: int, carries: int, test: Graph | None) -> str | None:
    """Return the key of the entry for scalar code of a loop body; None if it has none."""
    asked = "" if test is None else _key("test", test)
    return None if asked is None else _key("trips", body, str(consts), str(carries), asked)


def _key(kind: str, graph: Graph, *parts: str) -> str | None:
    if debugging.get():
        return None
    try:
        graph_part = digest_of_graph(graph), generator_files()
    except (UnknownError, OSError):
        return None
    python = sys.version, MAGIC_NUMBER.hex(), str(sys.flags.optimize), np.__version__
    return cache.key_of(kind, *graph_part, *python, *parts)


def recall(key: str, graph: Graph, job: Job) -> Compiled | None:
    """Return the code under a key, whose lines belong to `graph`; None if missing or invalid."""
    found = _read(key)
    if not found:
        return None
    entry = Entry(Text(*found[0]), *found[1:])
    if entry.text.entry == _SCALAR:
        made = generate_later(graph, job, is_scalar=True)
        made.scalar = recall_module(entry.text, {}).function(_SCALAR)
        return made
    if entry.products and entry.is_controlled != blas.is_controlled():
        return None
    body, compiler, spare = job.part.body, Bodies(job.limits, []), list[Any]()
    table = {name: runtime_object(name) for name in entry.runtime}
    for name, k in entry.objects:
        table[name] = object_of(step_of(body[k]), compiler, spare)
    made = Compiled(graph)
    loaded = recall_module(entry.text, table)
    made.set_plan(loaded, [body[k] for k in entry.equations], compiler.made, entry)
    return made


def recall_trips(key: str) -> tuple[Loaded | None] | None:
    """Return the module under a key, or None for a body without scalar code; None if missing."""
    found = _read(key)
    if found is None:
        return None
    return (recall_module(Text(*found[0]), {}),) if found else (None,)


def keep(
    key: str | None,
    job: Job,
    loaded: Loaded,
    module: Module,
    equations: Sequence[Equation],
    seconds: float,
) -> None:
    """Write an entry for code that took so many `seconds` to generate, if that pays."""
    if key is None or not _pays(seconds):
        return
    place = {id(eqn): k for k, eqn in enumerate(job.part.body)}
    objects = tuple([(name, place[id(s.eqn)]) for name, s in module.objects.items()])
    runtime = tuple([name for name in module.table if name not in module.objects])
    at = tuple([place[id(eqn)] for eqn in equations])
    text = loaded.text(f.name for f in module.functions)
    facts = bool(module.users), module.products, module.products and blas.is_controlled()
    _write(key, (tuple(text), at, objects, runtime, *facts))


def keep_trips(
    key: str | None, loaded: Loaded | None, module: Module | None, seconds: float
) -> None:
    """Write an entry for scalar code of a loop body, or that it has none, if that pays."""
    if key is None or not _pays(seconds):
        return
    if loaded is None or module is None:
        _write(key, ())
    else:
        _write(key, (tuple(loaded.text(f.name for f in module.functions)),))


def _pays(seconds: float) -> bool:
    return seconds >= _LEAST * (1 + next(_written) / _MANY)


def _read(key: str) -> Any:
    """Return the content of an entry; None if it is missing or damaged."""
    with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
        with open_private(cache.cache_folder()) as folder:
            content = cache.recall(folder, f"{key}{cache.CODE}")
        if content is not None:
            found = marshal.loads(content)
            note_source(FROM_DISK)
            return found
    return None


def _write(key: str, content: Any) -> None:
    # Unlike C, NumPy code needs no folder of this process where the cache cannot be used.
    with (
        contextlib.suppress(OSError, ValueError),
        open_private(cache.cache_folder(), make=True) as folder,
    ):
        cache.keep(folder, f"{key}{cache.CODE}", marshal.dumps(content))
        # One entry in 256 looks for what is to be evicted.
        if key.startswith("00"):
            cache.evict_files(folder)
