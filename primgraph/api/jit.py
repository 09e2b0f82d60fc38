"""Just-in-time compilation by argument types, with a bounded cache."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from operator import attrgetter
from time import perf_counter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, final, overload

from primgraph import tree
from primgraph.api.arguments import call_differentiated, positions_of
from primgraph.api.jit_call import (
    POSITIONAL,
    Call,
    Difference,
    Place,
    Signature,
    declared_sizes,
    differences,
    names_in_order,
    parameters_of,
    static_places,
)
from primgraph.api.jit_entry import Entry, EntryIndex, numbers
from primgraph.api.jit_shortcut import Shortcut, fingerprint, no_shortcut
from primgraph.api.tracing import form_of, leaf_names, trace_function
from primgraph.api.transformed import P, R, Transformed
from primgraph.api.world import OnTensors, world_of_arguments
from primgraph.base.array_functions import MEMBERS
from primgraph.base.debug_mode import debugging
from primgraph.base.journal import log_compilation
from primgraph.base.locks import make_lock
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.base.user_lines import caller
from primgraph.codegen import Kernel
from primgraph.errors import ArgumentError, unknown_attribute
from primgraph.ir.frontend.result_names import generated_name
from primgraph.ir.frontend.signature import call_user_function, check_arguments
from primgraph.ir.types import TensorType
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile, require_options, style_for
from primgraph.program.sized import SizedKernel
from primgraph.program.trace import modules_named

if TYPE_CHECKING:
    from primgraph.api import jit_html
    from primgraph.eager.derivatives import inlined
else:
    jit_html = late("primgraph.api.jit_html")
    inlined = late("primgraph.eager.derivatives.inlined")


# Default maximum number of entries.
_MOST = 256
# Number of latest compilations that a cache miss is compared with, to find its reasons.
_COMPARED = 8
# Number of compilations of the first warning; it repeats when the number doubles.
_MANY = 32

_HINTS = {
    "value": "trace it, which takes it out of static_argnames and static_argnums",
    "shape": "name the sizes that change, as in sizes={'x': ('N', 3)}, or pad arrays",
    "dtype": "convert arrays to one dtype",
    "containers": "give containers that are built alike",
    "mode": "use functions of their own for training and evaluation",
}


class RecompilationWarning(UserWarning):
    """Warning that `jit` compiles one function repeatedly, with the most frequent cause.

    It is issued at the 32nd compilation, and each time that the number doubles.

        import warnings
        import primgraph as pg

        warnings.simplefilter("ignore", pg.RecompilationWarning)
    """


@final
@dataclass(frozen=True, slots=True)
class Compilation:
    """Compilation of a function; `reasons` says what was new in the call.

    `seconds` is the time of tracing and compiling.
    """

    reasons: tuple[str, ...]
    kernel: Kernel | SizedKernel = field(repr=False)
    seconds: float = field(default=0.0, repr=False, compare=False)

    def __str__(self) -> str:
        return "; ".join(self.reasons)


@overload
def jit(
    function: Callable[P, R],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    *,
    math: str = "exact",
    target: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
    max_entries: int = _MOST,
) -> Jit[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    math: str = "exact",
    target: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
    max_entries: int = _MOST,
) -> Callable[[Callable[P, R]], Jit[P, R]]: ...
@check_arguments
def jit(
    function: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    *,
    math: str = "exact",
    target: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
    max_entries: int = _MOST,
) -> Any:
    """Compile a function: trace it, and generate NumPy code for each kind of call.

    The function is called once, with variables, for each combination of shapes, dtypes and
    containers of its arguments; side effects happen only then. Python numbers count as arrays; a
    float has the widest float dtype among the arrays of the call, or else the default dtype.
    Arguments at `static_argnums` or named in `static_argnames` are not traced: each new value,
    which must be hashable, compiles again. Static values are equal if their classes and values are,
    at each leaf of tuples, frozen sets and dataclasses: `(2,)` and `(2.0,)`, and `0.0` and `-0.0`,
    differ; a NaN equals a NaN. Objects of other classes use their own equality.

    The code of the `max_entries` most recently used kinds of calls is kept; `compilations` of the
    result lists them, and why. A function that compiles again and again warns with a
    `RecompilationWarning`. Without a function, return a decorator: `@pg.jit(target="c")`.

    Arrays and numbers give arrays. Tensors give tensors that can be differentiated. Tensors found
    elsewhere, such as the parameters of a layer, are read at each call, and changed if the function
    changes them; if they require gradients, results are tensors. Switching a layer between training
    and evaluation compiles again; other Python state is read once. On variables, and in a program
    or a traced function, the function is called as it is. `math` and `target` are those of
    `pg.compile`; `rebind` and `through`, for functions written for NumPy, those of `pg.trace`.

    `sizes={"x": ("N", 3)}` gives shapes by the names of parameters: one compilation then serves all
    sizes; see `pg.SizedKernel`. None and -1 are sizes with names of their own. Arrays in containers
    are named as in messages, such as `batch['x']`. For tensors, shapes are numbers.

    Raises `ArgumentError` for arguments and results that are no containers of arrays, with their
    place, and for static ones that cannot be hashed. Where Python asks a variable for a number, the
    error names the line.

    >>> scaled = pg.jit(lambda x, n: x * n, static_argnames="n", max_entries=16)
    >>> scaled(np.ones(3), n=2), scaled(np.ones(3), n=3)
    (array([2., 2., 2.]), array([3., 3., 3.]))
    >>> print(*scaled.compilations, sep=", ")
    the first call, n is 3, and was 2
    """
    names = modules_named(through)
    options = static_argnums, static_argnames, math, sizes, rebind, names, target, max_entries
    return partial(_build_jit, options) if function is None else Jit(function, *options)


def _build_jit(options: tuple[Any, ...], function: Callable[..., Any]) -> Jit[..., Any]:
    return Jit(function, *options)


@final
class Jit(Transformed[P, R]):
    """Function compiled once per call signature; see `jit`."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(self, name, MEMBERS)

    def __init__(
        self,
        function: Callable[P, R],
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Iterable[str] = (),
        math: str = "exact",
        sizes: Mapping[str, Any] | None = None,
        rebind: bool = True,
        through: tuple[str, ...] = (),
        target: str | None = None,
        max_entries: int = _MOST,
    ) -> None:
        super().__init__("jit", function)
        if type(max_entries) is not int or max_entries < 1:
            raise ArgumentError(
                f"jit: max_entries is an integer from 1 on, not {max_entries!r:.60}",
                hint=f"leave it out to keep the last {_MOST}",
            )
        require_options(target, math)
        self.rebind = rebind
        self.through = through
        self.max_entries = max_entries
        self.sizes = declared_sizes(sizes or {})
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        places = (
            positions_of("jit", static_argnums, "static_argnums") if static_argnums != () else ()
        )
        sizes = dict(self.sizes)
        self._options = places, names, math, sizes, rebind, through, target, max_entries
        parameters = parameters_of(function)
        self.ordered = names_in_order(parameters)
        self.statics = static_places(parameters, places, names)
        self._names = [p.name for p in parameters if p.kind in POSITIONAL]
        self._math, self._target = math, target
        self._lock = make_lock()
        # By signature key, then by the training modes of layers.
        self._entries: dict[Hashable, dict[Hashable, Entry]] = {}
        self._index = EntryIndex()
        # The shortcut of the latest call, if its entry is the most recently used one.
        self._shortcut: Shortcut = no_shortcut
        # All entries by number, most recently used last.
        self._used: OrderedDict[int, Entry] = OrderedDict()
        self._count = 0
        self._latest: deque[Signature] = deque(maxlen=_COMPARED)
        self._causes: deque[frozenset[tuple[str, str]]] = deque(maxlen=_MANY)

    @property
    def generated_name(self) -> str:
        return generated_name(self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        return Jit, (self.function, *self._options)

    @property
    def compilations(self) -> tuple[Compilation, ...]:
        """Cached compilations with their reasons, in order."""
        kept = [*self._used.values()]
        kept.sort(key=attrgetter("number"))
        return tuple([Compilation(entry.reasons, entry.for_users, entry.seconds) for entry in kept])

    def _repr_html_(self) -> str:
        """Return HTML of the signature, the compilations with times, and the source, folded."""
        return jit_html.render_jit(repr(self), self.function, self._target, self.compilations)

    def clear_cache(self) -> None:
        """Evict all entries, and reset the number of compilations."""
        with self._lock:
            for memory in (self._entries, self._index, self._used, self._latest, self._causes):
                memory.clear()
            self._shortcut = no_shortcut
            self._count = 0

    def root(self, place: Place) -> str:
        """Return the name of an argument in messages."""
        if isinstance(place, str):
            return place
        return self._names[place] if place < len(self._names) else f"argument {place}"

    def kernel(self, *args: P.args, **kwargs: P.kwargs) -> Kernel | SizedKernel:
        """Return the kernel that a call with these arguments runs.

        In the place of an array its type will do, as `pg.spec((3,))`. The kernel takes the
        arguments, other than static ones, and then an array for each tensor that the function has
        found elsewhere; it returns what the function did, as the kernel of a traced function does.
        """
        return self._entry(Call(self, args, kwargs, specs=True)).for_users

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._shortcut(args, kwargs)
        if result is not None:
            return result
        found = self._index.find(args, kwargs)
        if found is not None:
            entry, shortcut, result = found
            self._touch(entry, shortcut)
            return result
        result = self._result(args, kwargs)
        return result

    def _result(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        call = Call(self, args, kwargs)
        world = world_of_arguments([x for x in call.found if isinstance(x, Handle)])
        if not isinstance(world, OnTensors):
            called = call_differentiated if self.rebind else call_user_function
            return called(self.function, *args, **kwargs)
        entry = self._entry(call)
        if entry.traced.tensors or not world.arrays:
            return world.convert_results(entry.call_on_tensors(call.leaves))
        shortcut = entry.shortcut_for(call, args, kwargs)
        if shortcut is not None:
            with self._lock:
                # Another thread may have evicted it.
                if entry.number in self._used:
                    self._index.add(entry, fingerprint(args, kwargs))
                    self._touch(entry, shortcut)
        return tree.unflatten(entry.traced.structure, entry.kernel(*call.leaves))

    def _touch(self, entry: Entry, shortcut: Shortcut = no_shortcut) -> None:
        """Mark an entry as most recently used, unless another thread has evicted it."""
        self._shortcut = shortcut
        try:
            self._used.move_to_end(entry.number)
        except KeyError:
            self._shortcut = no_shortcut

    def _entry(self, call: Call) -> Entry:
        """Return the entry for a call, and compile it on a cache miss."""
        key = call.signature.key
        known = [*self._entries.get(key, {}).values()]
        entry = next((e for e in known if e.traced.is_current), None)
        if entry is not None:
            if debugging.get():
                self._look_at([entry])
            self._touch(entry)
            return entry
        self._look_at([*self._used.values()][-_COMPARED:])
        found = self._differences(call.signature) if not known else _modes(known[-1])
        reasons = tuple([difference.text for difference in found]) or ("the first call",)
        types = ", ".join([str(TensorType(*type)) for type in call.signature.types])
        title = f"jit {generated_name(self.function)}({types})"
        with log_compilation(title, "; ".join(reasons)):
            made = self._compile_call(call, key, reasons)
        with self._lock:
            # Another thread may have compiled it first.
            entry = self._entries.setdefault(key, {}).setdefault(made.modes, made)
            if entry is made:
                self._keep(made, call.signature)
            else:
                self._touch(entry)
        if entry is made:
            self._causes.append(frozenset([(d.what, d.of) for d in found]))
            self._warn(reasons)
        return entry

    def _compile_call(self, call: Call, key: Hashable, reasons: tuple[str, ...]) -> Entry:
        """Compile the function for a call."""
        signature = call.signature
        parts = [(p, s) for p, s in signature.arguments if isinstance(s, tree.Structure)]
        hints = [n for p, s in parts for n in leaf_names(s, self.root(p).replace(" ", "_"))]
        types = [TensorType(shape, dtype) for shape, dtype in signature.types]
        rooms = importlib.import_module("primgraph.numpy.rebound")
        written, kind = self.function, signature.kind
        if kind is Variable and self.rebind:
            written, kind = rooms.traceable(self.function, self.through)

        def call_function(variables: Sequence[Variable]) -> Any:
            args, named = call.arguments(variables)
            return call_user_function(written, *args, **named)

        title = generated_name(self.function)
        begun = perf_counter()
        style_for("planned", self._target)
        users = inspect.unwrap(self.function)
        mentioned = partial(rooms.referenced_names, users, call.statics())
        with rooms.warn_of_randomness(title, mentioned, users):
            found = trace_function("jit", call_function, types, hints, title, kind, True)
        kernel = compile(found.graph, math=self._math, target=self._target)
        seconds = perf_counter() - begun
        captured = rooms.Captured.from_values(mentioned())
        form = form_of([(self.root(p).replace("argument ", "x"), s) for p, s in parts], found)
        return Entry(next(numbers), key, found, kernel, reasons, seconds, captured, form)

    def _look_at(self, entries: Iterable[Entry]) -> None:
        """Warn about captured arrays that have changed since compilation."""
        for captured in {id(c.array): c for e in entries for c in e.captured}.values():
            captured.warn_of_change(generated_name(self.function))

    def _keep(self, entry: Entry, signature: Signature) -> None:
        """Add a new entry, and evict the least recently used one if there are too many."""
        self._count += 1
        self._used[entry.number] = entry
        self._shortcut = no_shortcut
        self._latest.append(signature)
        while len(self._used) > self.max_entries:
            _, old = self._used.popitem(last=False)
            alike = self._entries[old.key]
            del alike[old.modes]
            if not alike:
                del self._entries[old.key]
            self._index.remove(old)

    def _differences(self, signature: Signature) -> list[Difference]:
        """Return what is new in a call, compared with the most similar recent compilation."""
        found: list[Difference] | None = None
        for other in [*self._latest]:
            beside = [*differences(signature, other, self.root)]
            # An equal signature without differences was evicted.
            if beside and (found is None or _weight(beside) <= _weight(found)):
                found = beside
        return found or []

    def _warn(self, reasons: tuple[str, ...]) -> None:
        """Warn with the most frequent reason if the function was compiled repeatedly."""
        count = self._count
        if count < _MANY or count & (count - 1):
            return
        causes = Counter(cause for causes in [*self._causes] for cause in causes)
        ((what, of), often), *_ = causes.most_common(1)
        owner = getattr(self.function, "__self__", None)
        name = repr(owner if isinstance(owner, Transformed) else self)
        hint = f"{_HINTS[what]}; " if what in _HINTS else ""
        place = caller()
        warnings.warn_explicit(
            f"{name:.80} was compiled {count} times, {often} of the last {_MANY} times because the "
            f"{what}{of and ' of '}{of} changed (now {'; '.join(reasons):.200}): {hint}code for "
            f"the last {self.max_entries} kinds of calls is kept, which max_entries sets",
            RecompilationWarning,
            place.file,
            place.line,
        )


def _modes(entry: Entry) -> list[Difference]:
    """Return the layers whose training mode differs from that of an entry."""
    others = [layer for layer, training in entry.traced.modes if layer.training is not training]
    words = dict.fromkeys(
        f"{type(x).__name__} is in {'training' if x.training else 'evaluation'}" for x in others
    )
    return [Difference(1, text, "mode", "layers") for text in words]


def _weight(differences: Sequence[Difference]) -> int:
    return sum(difference.weight for difference in differences)
