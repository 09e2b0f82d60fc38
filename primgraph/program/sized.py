"""Kernels by symbolic sizes: selection, specialisation and caching."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Self, TypeVar, final

import numpy as np

from primgraph.base.locks import make_lock
from primgraph.base.records import Fixed, dataclass
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import direct, is_for_all_sizes
from primgraph.codegen.kernel import in_form as of_kernel
from primgraph.errors import ArgumentError, BuildError, UnknownSizeError
from primgraph.ir.dims import extent_at, names_in, single_row_size
from primgraph.ir.frontend.containers import Form
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import Fitting, assumptions, checked_sizes
from primgraph.ir.types import Shape

T = TypeVar("T")

# Default number of size sets with cached kernels.
KEPT = 64
# Policies for new sizes.
GENERIC, COMPILE = "generic", "compile"

# A size set is frequent if its size-generic runs are at least this fraction of all.
_OFTEN = 16
# A kernel pays off after this many elements per equation; each run counts as this many more.
_ELEMENTS, _RUN = 1_000_000, 2_000
# Number of size sets without a kernel whose use is counted.
_REMEMBERED = 4096


def checked_kept(most: Any) -> int:
    """Return `most` if it is a number of size sets. Raises `ArgumentError` otherwise."""
    if type(most) is not int or most < 1:
        raise ArgumentError(f"kept_sizes is an integer from 1 on, not {most!r:.60}")
    return most


def checked_new(new_sizes: Any) -> str:
    """Return `new_sizes` if it is a known policy. Raises `ArgumentError` otherwise."""
    if new_sizes not in (GENERIC, COMPILE):
        raise ArgumentError(f"new_sizes is {GENERIC!r} or {COMPILE!r}, not {new_sizes!r:.60}")
    return str(new_sizes)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """Caching policy: the number of cached size sets, and the treatment of new ones.

    Without `compiles`, kernels are specialised on request only. There is one object for equal
    options, which is fast to look up by.
    """

    most: int = KEPT
    new_sizes: str = GENERIC
    compiles: bool = True

    @classmethod
    def from_options(cls, kept_sizes: Any, new_sizes: Any, compiles: bool = True) -> Policy:
        """Return the policy of these options. Raises `ArgumentError` for invalid ones."""
        key = checked_kept(kept_sizes), checked_new(new_sizes), compiles
        return _policies.setdefault(key, cls(*key))


_policies: dict[tuple[int, str, bool], Policy] = {}


class _SizeUse(NamedTuple):
    """Number of runs of a size set, and the number of elements that one run computes."""

    times: int
    elements: int


@final
class BySizes(Generic[T]):
    """Cache of results of `make` by sizes, for the most recently used size sets.

    `graph` has the assumptions about sizes, and `fitting` solves for them. New sizes use `whole()`,
    the size-generic object, created once. Specialising takes long and pays for frequent sizes. It
    happens when sizes are repeated, if they are at least a sixteenth of all size-generic uses, or
    have computed enough elements. The choice depends only on the sequence of requested sizes. If
    the size-generic object `suffices`, like native code, nothing is specialised. Thread-safe.
    """

    def __init__(
        self,
        graph: Graph,
        fitting: Fitting,
        make: Callable[[Mapping[str, int]], T],
        whole: Callable[[], T],
        policy: Policy,
        suffices: Callable[[T], bool] = lambda _: False,
    ) -> None:
        self.fitting = fitting
        self.policy = policy
        self._suffices = suffices
        self._conditions = assumptions(graph)
        self._make = make
        self._write = whole
        self._elements = _elements(graph) + _RUN * len(graph.body)
        self._least = _ELEMENTS * max(len(graph.body), 1)
        # By the extents of symbolic axes, newest last.
        self._made: dict[tuple[int, ...], T] = {}
        self._met: dict[tuple[int, ...], _SizeUse] = {}
        # Number of uses of the size-generic object.
        self._count = 0
        self._whole: T | None = None
        self._is_enough = False
        self._is_written = policy.new_sizes == GENERIC
        self._lock = make_lock()

    def __len__(self) -> int:
        """Number of specialised size sets."""
        return len(self._made)

    @property
    def only(self) -> T | None:
        """The size-generic object, if it exists and nothing else will be created."""
        return self._whole if self._is_enough else None

    def all(self) -> list[T]:
        """Return all objects that exist."""
        return [*([] if self._whole is None else [self._whole]), *self._made.values()]

    @property
    def whole(self) -> T:
        """The size-generic object, created on first use."""
        if self._whole is None:
            made = self._write()
            with self._lock:
                self._whole = made if self._whole is None else self._whole
            if self._suffices(self._whole) and self.policy.new_sizes == GENERIC:
                self._is_enough = True
        return self._whole

    def for_arrays(self, arrays: Sequence[Any]) -> T:
        """Return the object for the sizes of these arrays.

        Raises `FeedError` if the sizes contradict each other or the program's assumptions.
        """
        shapes = [_shape(a) for a in arrays]
        key = self.fitting.key(shapes)
        found = self._made.get(key)
        if found is None:
            return self._new(key, shapes)
        with self._lock:
            self._keep(key, found)
        return found

    def _new(self, key: tuple[int, ...], shapes: Sequence[Shape]) -> T:
        """Return the object for sizes that are not specialised yet."""
        met = self._met.get(key)
        if met is None:
            sizes = self._checked_sizes(shapes)
            met = _SizeUse(0, extent_at(self._elements, sizes))
        whole = None if self._is_ripe(met) else self._general()
        if whole is None:
            return self._made_for(key, self.fitting.sizes(shapes))
        with self._lock:
            self._count += 1
            self._met.pop(key, None)
            self._met[key] = _SizeUse(met.times + 1, met.elements)
            while len(self._met) > _REMEMBERED:
                del self._met[next(iter(self._met))]
        return whole

    def _is_ripe(self, met: _SizeUse) -> bool:
        """Return whether these sizes are frequent enough to specialise."""
        if not self.policy.compiles or not met.times:
            return False
        if self._whole is not None and self._suffices(self._whole):
            # Its C may have been compiled since it was made.
            self._is_enough = self.policy.new_sizes == GENERIC
            return False
        return _OFTEN * met.times >= self._count or met.times * met.elements >= self._least

    def _general(self) -> T | None:
        """Return the size-generic object, if it is usable.

        It does not exist if its code would need a size as a number.
        """
        if not self._is_written:
            return None
        try:
            return self.whole
        except UnknownSizeError:
            self._is_written = False
            return None

    def _checked_sizes(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """Return the sizes of arrays, checked against the program's assumptions."""
        sizes = self.fitting.sizes(shapes)
        self.fitting.require(self._conditions, sizes)
        return sizes

    def _made_for(self, key: tuple[int, ...], sizes: Mapping[str, int]) -> T:
        made = self._make(sizes)
        with self._lock:
            self._met.pop(key, None)
            self._keep(key, made)
        return made

    def _keep(self, key: tuple[int, ...], made: T) -> None:
        self._made.pop(key, None)
        self._made[key] = made
        while len(self._made) > self.policy.most:
            del self._made[next(iter(self._made))]

    def for_shapes(self, shapes: Sequence[Shape]) -> T:
        """Return the specialised object for arrays of these shapes; see `for_arrays`."""
        key = self.fitting.key(shapes)
        found = self._made.get(key)
        return self._made_for(key, self._checked_sizes(shapes)) if found is None else found

    def for_sizes(self, sizes: Mapping[str, Any]) -> T:
        """Return the specialised object for these sizes, which must be complete.

        Raises `BuildError` for a missing size, and the errors of `for_arrays`.
        """
        known = checked_sizes(sizes)
        shapes = [t.with_shape(self._extents(t.shape, known)).shape for _, t in self.fitting.inputs]
        return self.for_shapes(shapes)

    def _extents(self, shape: Shape, sizes: Mapping[str, int]) -> Shape:
        found = []
        for extent in shape:
            missing = sorted(names_in(extent) - sizes.keys())
            if missing:
                raise BuildError(
                    f"the number for size {missing[0]} is needed",
                    hint="sizes are named, as in sizes={"
                    f'"{missing[0]}": 32}}, or kernel.at({missing[0]}=32)',
                )
            found.append(extent_at(extent, sizes))
        return tuple(found)


def _elements(graph: Graph) -> int:
    """Count the elements that a graph's equations compute, with one step per loop."""
    counts = Counter(v.type for e in graph.body for v in e.outputs)
    total = 0
    for type, count in counts.items():
        total = total + count * single_row_size(type.size)
    return total


def _shape(array: Any) -> Shape:
    shape = getattr(array, "shape", None)
    return shape if type(shape) is tuple else np.shape(array)


@final
class SizedKernel(Fixed, Drawn):
    """A kernel for a graph with symbolic sizes: call it with an array for each input.

    It is called like a `Kernel`, and finds the sizes from the arrays. New sizes run code for all
    sizes, which `source` shows. Sizes that come again get a kernel of their own, kept for the last
    `kept_sizes` sets. `at` returns the kernel for given sizes.

    >>> kernel = pg.compile(pg.trace(lambda x: pg.sum(x * x), pg.spec("n")))
    >>> print(kernel(np.ones(3)), kernel(np.ones(5)))
    3.0 5.0
    >>> print(kernel.at(n=3).graph.inputs[0].type)
    f64[3]
    """

    __slots__ = ("__weakref__", "_kernels", "_options", "graph")

    graph: Graph
    _kernels: BySizes[Kernel]
    _options: tuple[Callable[..., Any], dict[str, Any]]

    def __init__(
        self,
        graph: Graph,
        make: Callable[[Mapping[str, int]], Kernel],
        whole: Callable[[], Kernel],
        policy: Policy,
        again: tuple[Callable[..., Any], dict[str, Any]],
    ) -> None:
        names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
        inputs = list(zip(names, graph.input_types, strict=True))
        fitting = Fitting(inputs, graph.sizes)
        fields = {
            "graph": graph,
            "_kernels": BySizes(graph, fitting, make, whole, policy, is_for_all_sizes),
            "_options": again,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __call__(self, /, *feeds: Any, out: Any = None, borrow: bool = False, **named: Any) -> Any:
        """Compute the outputs for `feeds` with the kernel for their sizes; see `Kernel`.

        Raises `FeedError` if sizes contradict each other or the graph's assumptions.
        """
        only = self._kernels.only
        if only is not None and not named and out is None and not borrow:
            run = direct(only)
            found = None if run is None else run(*feeds)
            if found is not None:
                return found
        kernel = self._kernels.for_arrays(self.graph.in_order(feeds, named))
        return kernel(*feeds, out=out, borrow=borrow, **named)

    @property
    def generic(self) -> Kernel:
        """Size-generic kernel in readable code. It does not check the sizes of its arguments."""
        return self._kernels.whole

    @property
    def source(self) -> str:
        """Readable, size-generic NumPy source, which new sizes run."""
        return self.generic.source

    def lines(self, style: str = "readable") -> list[tuple[str, int]]:
        """Return the source line by line, each with the equation that it computes; see
        `Kernel.lines`.

        Raises `BuildError` for the style "planned", whose code needs known sizes.
        """
        return self.generic.lines(style)

    def save(
        self,
        path: str | os.PathLike[str],
        *others: Kernel | SizedKernel,
        force: bool = False,
        scipy: bool = False,
        blas: bool = False,
        target: str = "numpy",
    ) -> None:
        """Write a Python file that needs NumPy only, with one size-generic function.

        It raises ValueError for sizes that contradict each other or the graph's assumptions. A path
        with the extension .c gives a C function whose first arguments are the sizes. The rest is as
        for `Kernel.save`.
        """
        kernels = [k.generic if isinstance(k, SizedKernel) else k for k in others]
        self.generic.save(path, *kernels, force=force, scipy=scipy, blas=blas, target=target)

    @property
    def sizes(self) -> tuple[str, ...]:
        """Symbolic sizes, by name."""
        return self.graph.sizes

    def wait(self, seconds: float | None = None) -> Self:
        """Return the kernel when no C is compiled for it in the background; see `Kernel.wait`.

        `seconds` is a limit for each of its kernels.
        """
        for kernel in self._kernels.all():
            kernel.wait(seconds)
        return self

    def at(self, **sizes: int) -> Kernel:
        """Return the kernel for these sizes, which must be complete: `kernel.at(N=32)`."""
        return self._kernels.for_sizes(sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        function, options = self._options
        return _again, (function, self.graph, options)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<sized kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def _again(function: Callable[..., Any], graph: Graph, options: dict[str, Any]) -> Any:
    """Rebuild a pickled sized kernel: `function` compiles its graph again."""
    return function(graph, **options)


def in_form(kernel: Kernel | SizedKernel, form: Form | None) -> Kernel | SizedKernel:
    """The same kernel, which takes and returns its arrays in the containers of `form`."""
    if isinstance(kernel, Kernel):
        return of_kernel(kernel, form)
    make, options = kernel._options
    made: SizedKernel = make(kernel.graph.in_form(form), **options)
    return made
