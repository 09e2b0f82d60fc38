"""Functions that are compiled for the types of their arguments, once each."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.codegen import Kernel
from primgraph.defaults import get_default_dtype
from primgraph.eager import recording
from primgraph.eager.adoption import stand_in
from primgraph.eager.inlined import Inlined, inlined, results
from primgraph.eager.node import given
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor, family_of
from primgraph.errors import ArgumentError, PrimgraphError
from primgraph.functional.arguments import following, parameter_names, positions_of
from primgraph.functional.tracing import Traced, dotted, traced
from primgraph.functional.transformed import Transformed
from primgraph.functional.world import OnTensors, is_array, world_among
from primgraph.ir.dims import Dim, names_in
from primgraph.ir.primitive import innermost
from primgraph.ir.signature import applied, checked
from primgraph.ir.types import NAME_OF_DTYPE, DType, Shape, TensorType, declared_shape
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile
from primgraph.program.sized import SizedKernel
from primgraph.program.trace import modules_named

# Where an argument of a call is: its position, or its name.
_Place: TypeAlias = "int | str"


@final
@dataclass(frozen=True, slots=True)
class _Static:
    """A static argument; those of another class are others, though they may be equal."""

    kind: type[Any]
    value: Hashable


@final
@dataclass(frozen=True, slots=True)
class _Key:
    """What a function is compiled for.

    For each argument its value, where that is static, or else its containers; the types of the
    arrays in these, one after the other; the default dtype; and the class of handles.
    """

    arguments: tuple[tuple[_Place, _Static | tree.Structure], ...]
    types: tuple[tuple[tuple[int, ...], DType], ...]
    default: DType
    kind: type[Variable]


@final
@dataclass(frozen=True, slots=True)
class Compilation:
    """What a function was compiled to, and why: `reasons` say what was new in the call."""

    reasons: tuple[str, ...]
    kernel: Kernel | SizedKernel = field(repr=False)

    def __str__(self) -> str:
        return "; ".join(self.reasons)


@final
@dataclass(frozen=True, slots=True)
class _Entry:
    """A compiled function: what was traced, its kernel, and what it is to tensors."""

    traced: Traced
    kernel: Kernel | SizedKernel
    steps: list[Inlined]


@checked
def jit(
    function: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    *,
    math: str = "exact",
    target: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    rebind: bool = True,
    through: Sequence[ModuleType] = (),
) -> Jit:
    """The same function, compiled: traced and turned into NumPy code for each kind of call.

    It is called once for all calls with arrays of the same shapes and dtypes in the same
    containers, with variables in their place, so that what it does besides computing is done only
    then. Python's numbers count as arrays: a float is of the widest float dtype among the arrays
    of the call, or else of the default one. Arguments at `static_argnums` or of `static_argnames`
    are not traced: for each value that they have, which can be hashed, it is compiled anew.
    `compilations` of the result tells what it was compiled to, and why.

    For arrays and numbers it gives arrays. For tensors it gives tensors, and derivatives go
    through it. Tensors that the function finds elsewhere, such as the parameters of a layer, are
    those that it found when it was compiled, with the elements that they have at each call; where
    they require gradients, it gives tensors. It is compiled anew where layers that it calls are in
    training and were in evaluation, or the other way round; what else of Python it reads, stays.
    On variables, and where a program is built or a function traced, it is the function itself.
    `math` and `target` are as in `pg.compile`.

    A function that was written for NumPy is traced as it is: a copy of it in which NumPy's names
    mean those of `primgraph.numpy`, as in `pg.trace`, and functions of the modules in `through` are
    followed; `rebind=False` traces the function itself.

    `sizes` has shapes for arrays, by the names of parameters, as in `sizes={"x": ("N", 3)}`: for
    arrays of all shapes that fit the function is then called once, and what it is compiled to finds
    the size N; see `pg.SizedKernel`. None and -1 are sizes with names of their own. An array in a
    container goes by what messages call it, such as `batch['x']`. For tensors, which derivatives
    may go through, shapes are numbers.

    Raises `ArgumentError` for arguments and results that are no containers of arrays, with their
    place, and for static ones that cannot be hashed; where Python asks a variable for numbers, the
    error has the line.
    """
    names = modules_named(through)
    return Jit(function, static_argnums, static_argnames, math, sizes, rebind, names, target)


@final
class Jit(Transformed):
    """A function that is compiled when it is called with arguments of another kind; see `jit`."""

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Sequence[int] = (),
        static_argnames: str | Iterable[str] = (),
        math: str = "exact",
        sizes: Mapping[str, Any] | None = None,
        rebind: bool = True,
        through: tuple[str, ...] = (),
        target: str | None = None,
    ) -> None:
        super().__init__("jit", function)
        self.rebind = rebind
        self.through = through
        self.sizes = _declared(sizes or {})
        names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        places = (
            positions_of("jit", static_argnums, "static_argnums") if static_argnums != () else ()
        )
        self._options = places, names, math, dict(self.sizes), rebind, through, target
        self.ordered = _ordered(function)
        self.statics = _statics(function, places, names)
        self._math, self._target = math, target
        # For each kind of call by the modes of the layers in it.
        self._entries: dict[_Key, dict[Hashable, _Entry]] = {}
        # By the types of arrays that are all the arguments.
        self._quick: dict[Hashable, _Entry] = {}
        self._compilations: list[Compilation] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Jit, (self.function, *self._options)

    @property
    def compilations(self) -> tuple[Compilation, ...]:
        """What it was compiled to so far, with the reasons, in order."""
        return tuple(self._compilations)

    def clear_cache(self) -> None:
        """Forget all that was compiled."""
        self._entries.clear()
        self._quick.clear()
        self._compilations.clear()

    def kernel(self, *args: Any, **kwargs: Any) -> Kernel | SizedKernel:
        """The kernel that a call with these arguments runs.

        It takes the arrays in the arguments in a row, and then those of tensors that the function
        has found elsewhere; it returns a list.
        """
        return self._entry(_Call(self, args, kwargs)).kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and innermost.get() is None:
            quick = self._quick.get(_types_of(args))
            if quick is not None and quick.traced.is_current:
                return tree.unflatten(quick.traced.structure, quick.kernel(*args))
        call = _Call(self, args, kwargs)
        world = world_among([x for x in call.found if isinstance(x, Handle)])
        if not isinstance(world, OnTensors):
            called = following if self.rebind else applied
            return called(self.function, *args, **kwargs)
        entry = self._entry(call)
        if entry.traced.tensors or not world.arrays:
            return world.given_back(_on_tensors(entry, call.leaves))
        if call.is_plain and isinstance(entry.kernel, Kernel):
            self._quick[_types_of(args)] = entry
        return tree.unflatten(entry.traced.structure, entry.kernel(*call.leaves))

    def _entry(self, call: _Call) -> _Entry:
        known = [*self._entries.get(call.key, {}).values()]
        entry = next((e for e in known if e.traced.is_current), None)
        if entry is None:
            reasons = _modes(known[-1]) if known else call.reasons([*self._entries])
            made = call.compiled(self._math, self._target)
            modes = tuple([(id(layer), training) for layer, training in made.traced.modes])
            # Another thread may have been quicker.
            entry = self._entries.setdefault(call.key, {}).setdefault(modes, made)
            if entry is made:
                self._compilations.append(Compilation(reasons, made.kernel))
        return entry


def _declared(sizes: Mapping[str, Any]) -> dict[str, Shape]:
    """The shapes of arrays, where None and -1 are sizes with names of their own."""
    taken: set[str] = set()
    for shape in sizes.values():
        named = [n for n in shape if isinstance(n, str | Dim)] if isinstance(shape, tuple) else ()
        taken |= names_in(declared_shape(named))
    found: dict[str, Shape] = {}
    for name, shape in sizes.items():
        found[name] = declared_shape(shape, name, taken)
        taken |= names_in(found[name])
    return found


def _modes(entry: _Entry) -> tuple[str, ...]:
    """Which layers are in another mode than they were in there, in words."""
    others = [layer for layer, training in entry.traced.modes if layer.training is not training]
    words = dict.fromkeys(
        f"{type(x).__name__} is in {'training' if x.training else 'evaluation'}" for x in others
    )
    return tuple(words)


def _on_tensors(entry: _Entry, leaves: Sequence[Any]) -> Any:
    """Tensors: computed at once, or recorded where derivatives may be asked for."""
    nodes = [x.node if isinstance(x, Tensor) else given(np.array(x)) for x in leaves]
    nodes += [t.node for t in entry.traced.tensors]
    if recording.is_on.get() and any(n.tracked for n in nodes):
        found = results(entry.steps, tuple(nodes))
    else:
        compute(nodes)
        found = [given(array) for array in entry.kernel(*[n.array for n in nodes])]
    return tree.unflatten(entry.traced.structure, map(family_of(leaves), found))


def _types_of(arrays: Sequence[Any]) -> Hashable:
    """What tells arguments that are arrays alone; nothing that is known where others are."""
    types: list[Hashable] = [get_default_dtype()]
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
        types.append(array.shape)
        types.append(array.dtype)
    return tuple(types)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


def _ordered(function: Callable[..., Any]) -> list[str]:
    """The parameters that may be given by position and by name."""
    kinds = [(p.name, p.kind is p.POSITIONAL_OR_KEYWORD) for p in _parameters(function)]
    return [name for name, either in kinds if either] if all(e for _, e in kinds) else []


def _statics(
    function: Callable[..., Any], places: Sequence[int], names: Sequence[str]
) -> frozenset[_Place]:
    """Where static arguments may be: each by its position and by its name, as far as it has both.

    Raises `ArgumentError` for a name that the function does not have.
    """
    found: set[_Place] = {*places, *names}
    parameters = _parameters(function)
    ordered = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = [p.name for p in parameters]
        for name in names:
            if name not in known:
                raise ArgumentError(
                    f"jit: there is no argument {name!r:.60}",
                    hint=f"the function takes {', '.join(map(repr, known))}",
                )
    for place in places:
        if -len(ordered) <= place < len(ordered):
            found |= {place % len(ordered), ordered[place]}
    found |= {i for i, name in enumerate(ordered) if name in names}
    return frozenset(found)


@final
class _Call:
    """The arguments of a call: what it is compiled for, and the arrays in it, one after another.

    `found` are these as they were given. The call is of arrays by position alone if it `is_plain`.
    """

    __slots__ = ("_jit", "_values", "_written", "found", "is_plain", "key", "leaves")

    def __init__(self, jit: Jit, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._jit = jit
        self._written = jit.function
        values: dict[_Place, Any] = {**dict(enumerate(args))}
        # The same arguments by position and by name are one kind of call.
        for number, name in enumerate(jit.ordered[len(args) :] if kwargs else (), len(args)):
            if name not in kwargs:
                break
            values[number] = kwargs[name]
        moved = jit.ordered[len(args) : len(values)]
        values.update((name, value) for name, value in kwargs.items() if name not in moved)
        self._values = values
        self.found: list[Any] = []
        arguments: list[tuple[_Place, _Static | tree.Structure]] = []
        for place, value in self._values.items():
            if place in jit.statics:
                arguments.append((place, _Static(type(value), value)))
            else:
                leaves, structure = tree.flatten(value)
                self.found += leaves
                arguments.append((place, structure))
        floats = _float_dtype(self.found)
        self.leaves = [self._array(arguments, i, x, floats) for i, x in enumerate(self.found)]
        kind = stand_in(family_of(self.found))
        types = self._types(arguments)
        self.key = _Key(tuple(arguments), types, get_default_dtype(), kind)
        self.is_plain = not kwargs and all(type(x) is np.ndarray for x in args)
        try:
            hash(self.key)
        except TypeError:
            raise self._unhashable() from None

    def _array(
        self,
        arguments: Sequence[tuple[_Place, _Static | tree.Structure]],
        number: int,
        leaf: Any,
        floats: DType,
    ) -> Any:
        """A leaf as an array or a tensor; Python's floats get the dtype `floats`."""
        if isinstance(leaf, Handle) or (type(leaf) is np.ndarray and leaf.dtype in NAME_OF_DTYPE):
            return leaf
        try:
            if is_array(leaf):
                return array_of(leaf, floats if type(leaf) is float else None)
        except PrimgraphError as error:
            error.message = f"jit: {self._paths(arguments)[number]}: {error.message}"
            raise
        raise ArgumentError(
            f"jit: {self._paths(arguments)[number]} is {type(leaf).__name__} {leaf!r:.60}, and no "
            "array",
            hint="name arguments that are no arrays in static_argnames",
        )

    def _types(
        self, arguments: Sequence[tuple[_Place, _Static | tree.Structure]]
    ) -> tuple[tuple[Shape, DType], ...]:
        """What the arrays are compiled for: their shapes, or those with sizes; and dtypes."""
        types = [(x.shape, x.dtype) for x in self.leaves]
        sizes = self._jit.sizes
        if sizes and not any(isinstance(x, Handle) for x in self.leaves):
            paths = self._paths(arguments)
            unknown = [name for name in sizes if name not in paths]
            if unknown:
                raise ArgumentError(
                    f"jit: there is no array {unknown[0]!r:.60} to have sizes",
                    hint=f"arrays of this call are {', '.join(paths)}",
                )
            types = [(sizes.get(p, t[0]), t[1]) for p, t in zip(paths, types, strict=True)]
        return tuple(types)

    def _unhashable(self) -> ArgumentError:
        """What is wrong where a key cannot be hashed."""
        for place, value in self._values.items():
            try:
                hash(value if place in self._jit.statics else tree.structure(value))
            except TypeError:
                return ArgumentError(
                    f"jit: {self._root(place)} is static, and {type(value).__name__} "
                    f"{value!r:.60} cannot be hashed",
                    hint="give a tuple for a list, or let it be traced",
                )
        return ArgumentError("jit: an argument cannot be hashed")

    def _root(self, place: _Place) -> str:
        """What a message calls the argument at that place."""
        if isinstance(place, str):
            return place
        return parameter_names(self._jit.function, place + 1)[place]

    def _paths(self, arguments: Sequence[tuple[_Place, _Static | tree.Structure]]) -> list[str]:
        """What a message calls each array."""
        return [
            path
            for place, part in arguments
            if isinstance(part, tree.Structure)
            for path in tree.paths_of(part, self._root(place))
        ]

    def compiled(self, math: str, target: str | None) -> _Entry:
        """The function, compiled for this call."""
        structures = [(p, s) for p, s in self.key.arguments if isinstance(s, tree.Structure)]
        hints = [n for p, s in structures for n in dotted(s, self._root(p).replace(" ", "_"))]
        types = [TensorType(shape, dtype) for shape, dtype in self.key.types]
        title = getattr(self._jit.function, "__name__", "f")
        kind = self.key.kind
        if kind is Variable and self._jit.rebind:
            rooms = importlib.import_module("primgraph.numpy.rebound")
            self._written, kind = rooms.traceable(self._jit.function, self._jit.through)
        found = traced("jit", self._called, types, hints, title, kind)
        kernel = compile(found.graph, math=math, target=target)
        # Sizes are not used where tensors are.
        steps = [] if isinstance(kernel, SizedKernel) else inlined(found.graph)
        return _Entry(found, kernel, steps)

    def _called(self, variables: Sequence[Variable]) -> Any:
        """What the function gives for variables in the place of arrays."""
        waiting = iter(variables)
        args: list[Any] = []
        named: dict[str, Any] = {}
        for place, part in self.key.arguments:
            value = self._values[place]
            if isinstance(part, tree.Structure):
                value = tree.unflatten(part, [next(waiting) for _ in range(tree.count(part))])
            if isinstance(place, str):
                named[place] = value
            else:
                args.append(value)
        return applied(self._written, *args, **named)

    def reasons(self, known: Sequence[_Key]) -> tuple[str, ...]:
        """What is new in this call, beside the most similar one of those that are known."""
        found: list[tuple[int, str]] | None = None
        for key in known:
            differences = [*self._differences(key)]
            if found is None or _weight(differences) <= _weight(found):
                found = differences
        return ("the first call",) if found is None else tuple([text for _, text in found])

    def _differences(self, other: _Key) -> Iterator[tuple[int, str]]:
        """What this call has that another one has not, in words, and how much that is."""
        before = dict(other.arguments)
        types, types_before = _types_by_place(self.key), _types_by_place(other)
        for place, part in self.key.arguments:
            root, known = self._root(place), before.pop(place, None)
            if known is None:
                yield 2, f"{root} is given"
            elif isinstance(part, _Static) and isinstance(known, _Static):
                if part != known:
                    yield 1, f"{root} is {_text(part)}, and was {_text(known)}"
            elif part != known:
                yield 2, f"{root} is {_text(part)}, and was {_text(known)}"
            else:
                paths = tree.paths_of(part, root) if isinstance(part, tree.Structure) else []
                rows = zip(paths, types[place], types_before[place], strict=True)
                for path, new, old in rows:
                    if new != old:
                        weight = (new[0] != old[0]) + (new[1] != old[1])
                        yield weight, f"{path} is {TensorType(*new)}, and was {TensorType(*old)}"
        yield from ((2, f"{self._root(place)} is not given") for place in before)
        if self.key.default != other.default:
            yield 1, f"the default dtype is {self.key.default}, and was {other.default}"
        if self.key.kind is not other.kind:
            modules = self.key.kind.__module__, other.kind.__module__
            yield 1, "tensors are of {}, and were of {}".format(*modules)


def _weight(differences: Sequence[tuple[int, str]]) -> int:
    return sum(weight for weight, _ in differences)


def _count(part: _Static | tree.Structure) -> int:
    return 0 if isinstance(part, _Static) else tree.count(part)


def _types_by_place(key: _Key) -> dict[_Place, list[tuple[tuple[int, ...], DType]]]:
    types = iter(key.types)
    return {place: [next(types) for _ in range(_count(part))] for place, part in key.arguments}


def _text(part: _Static | tree.Structure) -> str:
    return f"{part.value!r:.60}" if isinstance(part, _Static) else str(part)


def _float_dtype(leaves: Iterable[Any]) -> DType:
    """The dtype of Python's floats: the widest of a float array, or else the default one."""
    found = {x.dtype for x in leaves if isinstance(x, Handle | np.ndarray) and x.dtype.kind == "f"}
    return np.result_type(*found) if found else get_default_dtype()
