"""What is made for each set of sizes of arrays: kernels, how they are chosen and kept."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from primgraph.base.immutable import Fixed
from primgraph.base.locks import make_lock
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import direct, is_for_all_sizes
from primgraph.codegen.kernel import in_form as of_kernel
from primgraph.errors import ArgumentError, BuildError, UnknownSizeError
from primgraph.ir.dims import extent_at, names_in, of_one_trip
from primgraph.ir.frontend.containers import Form
from primgraph.ir.frontend.drawable import Drawn
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import Fitting, assumptions, checked_sizes
from primgraph.ir.types import Shape

T = TypeVar("T")

# For how many sets of sizes kernels are kept unless a call says otherwise.
KEPT = 64
# What is done for sizes that are met for the first time.
GENERIC, COMPILE = "generic", "compile"

# What part of the runs by code for all sizes are for those that come often.
_OFTEN = 16
# A kernel pays for itself after as many elements as this for each equation; a run is worth some
# elements of each equation whatever its sizes.
_ELEMENTS, _RUN = 1_000_000, 2_000
# Of how many sets of sizes without a kernel it is known how often they came.
_REMEMBERED = 4096


def checked_kept(most: Any) -> int:
    """`most`, if it is a number of sets of sizes. Raises `ArgumentError` for all else."""
    if type(most) is not int or most < 1:
        raise ArgumentError(f"kept_sizes is an integer from 1 on, not {most!r:.60}")
    return most


def checked_new(new_sizes: Any) -> str:
    """`new_sizes`, if it says what is done for new sizes. Raises `ArgumentError` for all else."""
    if new_sizes not in (GENERIC, COMPILE):
        raise ArgumentError(f"new_sizes is {GENERIC!r} or {COMPILE!r}, not {new_sizes!r:.60}")
    return str(new_sizes)


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """How many sets of sizes are kept, and what is done for new ones.

    Without `compiles` nothing is made for sizes unless it is asked for.
    """

    most: int = KEPT
    new_sizes: str = GENERIC
    compiles: bool = True

    @classmethod
    def checked(cls, kept_sizes: Any, new_sizes: Any, compiles: bool = True) -> Policy:
        """The policy of these options. Raises `ArgumentError` for what are none."""
        return cls(checked_kept(kept_sizes), checked_new(new_sizes), compiles)


class _Met(NamedTuple):
    """Sizes that have come so many times, and how many elements a run for them computes."""

    times: int
    elements: int


@final
class BySizes(Generic[T]):
    """What `make` gives for sizes, kept for those sets of them that were asked for last.

    `graph` says what is assumed of sizes, and `fitting` how they are found. For sizes that are
    new there is `whole()`, which is for all of them, and made but once: what is made for some
    sizes takes long, and pays if they come often. So it is made when they come again, if a
    sixteenth of all that took what is for all sizes were these; or if they have computed so much
    that it would have paid. What is taken depends on nothing but the sizes that were asked for
    before. Where what is for all sizes `suffices`, as native code does, nothing else is made.
    Many threads may ask at the same time.
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
        # By the extents of arrays that are not known before; the newest come last.
        self._made: dict[tuple[int, ...], T] = {}
        self._met: dict[tuple[int, ...], _Met] = {}
        # How often what is for all sizes was taken.
        self._count = 0
        self._whole: T | None = None
        self._is_enough = False
        self._is_written = policy.new_sizes == GENERIC
        self._lock = make_lock()

    def __len__(self) -> int:
        """For how many sets of sizes there is one."""
        return len(self._made)

    @property
    def only(self) -> T | None:
        """What is for all sizes, if it is there and nothing else will be made."""
        return self._whole if self._is_enough else None

    @property
    def whole(self) -> T:
        """What is for all sizes."""
        if self._whole is None:
            made = self._write()
            with self._lock:
                self._whole = made if self._whole is None else self._whole
            if self._suffices(self._whole) and self.policy.new_sizes == GENERIC:
                self._is_enough = True
        return self._whole

    def of(self, arrays: Sequence[Any]) -> T:
        """What is there for the sizes of these arrays.

        Raises `FeedError` where these contradict each other, or are not as the program assumes.
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
        """What is there for sizes for which nothing is made so far."""
        met = self._met.get(key)
        if met is None:
            sizes = self._checked(shapes)
            met = _Met(0, extent_at(self._elements, sizes))
        whole = None if self._is_ripe(met) else self._general()
        if whole is None:
            return self._made_for(key, self.fitting.sizes(shapes))
        with self._lock:
            self._count += 1
            self._met.pop(key, None)
            self._met[key] = _Met(met.times + 1, met.elements)
            while len(self._met) > _REMEMBERED:
                del self._met[next(iter(self._met))]
        return whole

    def _is_ripe(self, met: _Met) -> bool:
        """Whether it is time to make what is for these sizes alone."""
        if not self.policy.compiles or not met.times:
            return False
        if self._whole is not None and self._suffices(self._whole):
            return False
        return _OFTEN * met.times >= self._count or met.times * met.elements >= self._least

    def _general(self) -> T | None:
        """What is for all sizes, if it is what new ones take.

        There is none where its code would have to know more of the sizes than that they are some.
        """
        if not self._is_written:
            return None
        try:
            return self.whole
        except UnknownSizeError:
            self._is_written = False
            return None

    def _checked(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """The sizes of arrays, which are as the program assumes."""
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

    def at(self, shapes: Sequence[Shape]) -> T:
        """What is made for the sizes of arrays of these shapes; see `of`."""
        key = self.fitting.key(shapes)
        found = self._made.get(key)
        return self._made_for(key, self._checked(shapes)) if found is None else found

    def given(self, sizes: Mapping[str, Any]) -> T:
        """What is made for these sizes, all of which are named.

        Raises `BuildError` for a size that is missing, and the errors of `of`.
        """
        known = checked_sizes(sizes)
        shapes = [t.with_shape(self._extents(t.shape, known)).shape for _, t in self.fitting.inputs]
        return self.at(shapes)

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
    """How many elements the equations of a graph compute, loops once."""
    counts = Counter(v.type for e in graph.body for v in e.outputs)
    total = 0
    for type, count in counts.items():
        total = total + count * of_one_trip(type.size)
    return total


def _shape(array: Any) -> Shape:
    shape = getattr(array, "shape", None)
    return shape if type(shape) is tuple else np.shape(array)


@final
class SizedKernel(Fixed, Drawn):
    """An executable made from a graph with sizes: call it with an array for each input.

    It is called as a `Kernel` is. The sizes are found from the arrays. Those that are new take
    code for all sizes, which `source` shows; for those that come again a kernel is compiled, and
    kept for the `kept_sizes` sets that came last. `at` gives it for some sizes.
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
        """The outputs for `feeds`, as a kernel for their sizes gives them; see `Kernel`.

        Raises `FeedError` where sizes contradict each other, or are not as the graph assumes.
        """
        only = self._kernels.only
        if only is not None and not named and out is None and not borrow:
            run = direct(only)
            found = None if run is None else run(*feeds)
            if found is not None:
                return found
        kernel = self._kernels.of(self.graph.in_order(feeds, named))
        return kernel(*feeds, out=out, borrow=borrow, **named)

    @property
    def generic(self) -> Kernel:
        """The kernel for all sizes, in readable code. It trusts the sizes of what it is given."""
        return self._kernels.whole

    @property
    def source(self) -> str:
        """The readable NumPy source, for all sizes, which new ones run."""
        return self.generic.source

    def lines(self, style: str = "readable") -> list[tuple[str, int]]:
        """The source line by line, each with the equation that it computes; see `Kernel.lines`.

        Raises `BuildError` for the style "planned", whose code is made for sizes that are known.
        """
        return self.generic.lines(style)

    def save(
        self,
        path: str | os.PathLike[str],
        *others: Kernel | SizedKernel,
        force: bool = False,
        scipy: bool = False,
        blas: bool = False,
    ) -> None:
        """Write a Python file that needs NumPy only, with one function for all sizes.

        It refuses sizes that contradict each other, or are not as the graph assumes, by ValueError.
        To a path that ends in .c it writes a function of C whose first arguments are the sizes.
        Otherwise it is as `Kernel.save` says.
        """
        kernels = [k.generic if isinstance(k, SizedKernel) else k for k in others]
        self.generic.save(path, *kernels, force=force, scipy=scipy, blas=blas)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that are found from arrays, by name."""
        return self.graph.sizes

    def at(self, **sizes: int) -> Kernel:
        """The kernel for these sizes, which are all named: `kernel.at(N=32)`."""
        return self._kernels.given(sizes)

    def __reduce__(self) -> tuple[Any, ...]:
        function, options = self._options
        return _again, (function, self.graph, options)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<sized kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def _again(function: Callable[..., Any], graph: Graph, options: dict[str, Any]) -> Any:
    """What pickle makes of a sized kernel: `function` compiles its graph again."""
    return function(graph, **options)


def in_form(kernel: Kernel | SizedKernel, form: Form | None) -> Kernel | SizedKernel:
    """The same kernel, which takes and returns its arrays in the containers of `form`."""
    if isinstance(kernel, Kernel):
        return of_kernel(kernel, form)
    make, options = kernel._options
    made: SizedKernel = make(kernel.graph.in_form(form), **options)
    return made
