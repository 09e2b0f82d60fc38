"""Compiled code and its workspaces; the code of equal graphs is shared."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, final
from weakref import WeakValueDictionary

import numpy as np

from primgraph.base.debug_mode import debugging
from primgraph.base.journal import FROM_EQUAL, note_source
from primgraph.base.locks import make_lock
from primgraph.base.providers import late, provider
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.load import Loaded
from primgraph.codegen.ops.families import family_of
from primgraph.ir.graph import Equation, Graph

if TYPE_CHECKING:
    from primgraph.codegen import constant_prefix
    from primgraph.codegen.ops import table
    from primgraph.codegen.runtime import blas
    from primgraph.codegen.targets.text import clocks as timing
else:
    constant_prefix = late("primgraph.codegen.constant_prefix")
    table = late("primgraph.codegen.ops.table")
    blas = late("primgraph.codegen.runtime.blas")
    timing = late("primgraph.codegen.targets.text.clocks")


Array: TypeAlias = "np.ndarray[Any, Any]"

# Held while code that may be shared is generated.
writing = make_lock()

_shared: WeakValueDictionary[Any, Compiled] = WeakValueDictionary()


class Told(Protocol):
    """Facts of planned code: whether it calls user functions, and products in one thread."""

    @property
    def users(self) -> object: ...

    @property
    def products(self) -> bool: ...


@final
class Compiled:
    """The code of a graph, and the workspaces that have been made for it.

    `run(workspace, arrays)` returns the results, in a list unless the options say otherwise. Lines
    of the code belong to steps, one per entry of `equations`, which are in the body of `graph`.
    `scalar(*arrays)`, if any, is faster, and returns None for unsupported arguments; native code
    takes buffers for results after the inputs. `fit(*arrays)` returns whether arrays can be used
    without conversion.

    `bodies` is the code of branches and loop bodies. With `in_trips`, `run` runs all iterations of
    a loop. `numbers` is the code of a branch whose results are returned, not written to given
    arrays.

    `once` is the code of the part that is computed only once, and `kept` its results; `run` and
    `scalar` take them after the other arrays.

    With `scalar` the rest is a fallback for other arguments, and generated when first needed.
    """

    __slots__ = (
        "__weakref__",
        "_write",
        "bodies",
        "equations",
        "fit",
        "graph",
        "in_trips",
        "is_native",
        "kept",
        "loaded",
        "numbers",
        "once",
        "pool",
        "run",
        "scalar",
        "start",
        "users",
    )

    equations: list[Equation]
    loaded: Loaded
    run: Callable[..., Any]
    start: Callable[[], Any]
    fit: Callable[..., bool]
    bodies: list[Compiled]
    in_trips: bool

    def __init__(self, graph: Graph, write: Callable[[Compiled], None] | None = None) -> None:
        self.graph = graph
        self.scalar: Callable[..., Any] | None = None
        self.pool: list[tuple[Context, Any]] = []
        self.users = False
        self.is_native = False
        self.once: Compiled | None = None
        self.kept: list[Array] | None = None
        self.numbers: Compiled | None = None
        self._write = write

    def set_text(self, equations: list[Equation], loaded: Loaded, *, users: bool) -> None:
        """Set the text of the code; `users` says whether it calls user functions."""
        self.equations, self.loaded, self.users = equations, loaded, users
        self.run = loaded.function(loaded.entry)
        self.start = _no_workspace
        self.fit = unknown
        self.bodies = []
        self.in_trips = loaded.entry == "trips"

    def set_plan(
        self, loaded: Loaded, equations: list[Equation], bodies: list[Compiled], told: Told
    ) -> None:
        """Set the text of planned code, the code of the bodies that it runs, and more of it."""
        self.set_text(equations, loaded, users=bool(told.users))
        self.bodies = bodies
        self.start = loaded.function("workspace")
        self.fit = loaded.namespace.get("fit", unknown)
        if told.products:
            self.run = blas.single_threaded(self.run)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Generate the code that is still missing, at the first access."""
            with writing:
                while self._write is not None and not _has(self, name):
                    # An interruption leaves nothing that is half written.
                    made = Compiled(self.graph)
                    self._write(made)
                    for part in filter(partial(_has, made), _LATE):
                        setattr(self, part, getattr(made, part))
                    self._write = made._write
            return object.__getattribute__(self, name)

    @property
    def is_checked(self) -> bool:
        """Return whether `fit` can tell that arrays need no conversion."""
        return self.fit is not unknown

    def new_workspace(self) -> tuple[Context, Any]:
        """Return an unused workspace, and the context to run in, to be added to `pool` later."""
        return _quiet_context(), self.start()

    def find_failing_line(self, error: Exception) -> tuple[int, int]:
        """Return the line that raised `error`, and the index of its equation; -1 for none."""
        line, i = self.loaded.find_failing_line(error)
        return line, self.positions()[i] if i >= 0 else -1

    def lines(self) -> list[tuple[str, int]]:
        """Return the lines of the text, each with the index of its equation; -1 for none."""
        # The last index is for lines without a step.
        place = [*self.positions(), -1]
        rows = zip(self.loaded.source.splitlines(), self.loaded.steps[1:], strict=True)
        return [(text, place[i]) for text, i in rows]

    def positions(self) -> list[int]:
        """Return the index in the graph's body of the equation of each step."""
        place = {id(eqn): i for i, eqn in enumerate(self.graph.body)}
        return [place[id(eqn)] for eqn in self.equations]


# Parts of code that may be generated late.
_LATE = ("bodies", "equations", "fit", "in_trips", "loaded", "run", "start")


def _has(code: Compiled, name: str) -> bool:
    """Return whether an attribute is there, without generating it."""
    try:
        object.__getattribute__(code, name)
    except AttributeError:
        return False
    return True


class Job(NamedTuple):
    """A part of a graph to compile, and where clocks are collected, if there are any."""

    part: Graph
    options: Options
    limits: Limits
    clocks: list[timing.Clocks] | None = None

    def native(self) -> Callable[..., Any] | None:
        """Return the function of native code, if there is any."""
        home = importlib.import_module("primgraph.codegen.native")
        by_numpy = provider("kernels").compile_graph
        found: Callable[..., Any] | None = home.native_function(*self[:3], by_numpy)
        return found


def compile_planned(
    graph: Graph,
    once: Sequence[int],
    options: Options,
    limits: Limits,
    clocks: list[timing.Clocks] | None = None,
    *,
    native: bool = False,
) -> Compiled:
    """Compile planned code for `graph`; equal graphs share it as long as a kernel uses it.

    `once` are the indices of equations that are computed only at the first call. Equal graphs may
    come from other source lines and have other names; planned code has neither. Equations of
    derivatives are distinguished, where the sign of a zero is free. Code that calls user functions
    is not shared. Nor is code with clocks, which are appended to `clocks`. With `native` it also
    has C code.
    """
    key = (graph, _derived_equations(graph), tuple(once), options, limits, native)
    found = _shared.get(key) if clocks is None else None
    if found is not None:
        note_source(FROM_EQUAL)
        return found
    job = Job(graph, options, limits, clocks)
    if not once:
        made = _compiled_part(graph, job, native=native)
    else:
        first, rest = constant_prefix.split_constant_prefix(graph, once)
        options = replace(options, kept=len(first.outputs))
        made = _compiled_part(graph, job._replace(part=rest, options=options), native=native)
        made.once = _compiled_part(graph, Job(first, Options(), limits), native=False)
    alone = made.users or clocks is not None or (made.once is not None and made.once.users)
    return made if alone else _shared.setdefault(key, made)


def _derived_equations(graph: Graph) -> tuple[Any, ...]:
    """Return for each equation whether it is of a derivative, and the same for its bodies."""
    found: tuple[Any, ...] | None = graph.noted(_derived_equations)
    if found is None:
        found = tuple([(e.is_derived, *map(_derived_equations, e.bodies)) for e in graph.body])
        graph.note(_derived_equations, found)
    return found


def _compiled_part(graph: Graph, job: Job, *, native: bool) -> Compiled:
    """Compile planned code for a part of `graph`, to which its lines belong."""
    scalar = job.native() if native and job.clocks is None else None
    if scalar is None:
        entries = provider("code entries")
        key = entries.key_of(job)
        found: Compiled | None = None if key is None else entries.recall(key, graph, job)
        return provider("planned code").generate(graph, job, key) if found is None else found
    made = generate_later(graph, job, is_scalar=False)
    made.users = has_users(job.part)
    made.scalar, made.is_native = scalar, True
    return made


def generate_later(graph: Graph, job: Job, *, is_scalar: bool) -> Compiled:
    """Return planned code that is generated when it is first needed, in debug mode at once.

    Before there is native code, or scalar code if it `is_scalar`.
    """

    def write(code: Compiled) -> None:
        provider("planned code").write_late(code, job, is_scalar=is_scalar)

    if not debugging.get():
        return Compiled(graph, write)
    made = Compiled(graph)
    write(made)
    return made


def has_users(graph: Graph) -> bool:
    """Return whether user functions are called."""
    return any(map(is_of_user, graph.body))


def is_of_user(eqn: Equation) -> bool:
    """Return whether an equation calls a function of the user."""
    if eqn.op.has_bodies:
        return any(map(has_users, eqn.bodies))
    return not family_of(eqn.op) and table.CARDS.get(eqn.op) is None


def _no_workspace() -> None:
    """Return None: the readable style has no workspace."""


def unknown(*arrays: Any) -> bool:
    """Return False: nothing is known about the arrays."""
    return False


def _quiet_context() -> Context:
    """Return a context in which NumPy ignores floating-point errors, whatever the caller's does.

    Entering it costs a small fraction of `np.errstate`, and changes nothing outside.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    return context
