"""Calls of a compiled function: cache key, arrays, and differences between calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.api.world import is_array
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.defaults import get_default_dtype
from primgraph.eager.inplace.adoption import stand_in_class
from primgraph.errors import ArgumentError, PrimgraphError
from primgraph.ir.dims import Dim, names_in
from primgraph.ir.params import bits
from primgraph.ir.types import NAME_OF_DTYPE, DType, Shape, TensorType, declared_shape
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    from primgraph.eager import tensor as tensors
else:
    tensors = late("primgraph.eager.tensor")


# Position or name of an argument.
Place: TypeAlias = "int | str"


class Parameters(Protocol):
    """Interface of a compiled function for its calls."""

    statics: frozenset[Place]
    ordered: list[str]
    sizes: dict[str, Shape]

    def root(self, place: Place) -> str:
        """Return the name of an argument in messages."""


@final
@dataclass(frozen=True, slots=True)
class Static:
    """A static argument."""

    value: Hashable

    def __str__(self) -> str:
        return f"{self.value!r:.60}"


Part: TypeAlias = "Static | tree.Structure"
_Type: TypeAlias = "tuple[Shape, DType]"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Call signature that a function is compiled for.

    `arguments` has, by place, each static value, or the containers of an argument, and `parts`
    their keys. `types` are those of all arrays, in order; `default` is the default dtype, and
    `kind` the class of handles. Signatures are equal if their `key` is.
    """

    arguments: tuple[tuple[Place, Part], ...]
    parts: tuple[Hashable, ...]
    types: tuple[_Type, ...]
    default: DType
    kind: type[Variable]

    @property
    def key(self) -> Hashable:
        """Cache key."""
        places = tuple([place for place, _ in self.arguments])
        return places, self.parts, self.types, self.default, self.kind

    def arguments_by_place(self) -> dict[Place, tuple[Part, Hashable, list[_Type]]]:
        """Return each argument with its key and the types of its arrays."""
        types = iter(self.types)
        return {
            place: (part, key, [next(types) for _ in range(_count(part))])
            for (place, part), key in zip(self.arguments, self.parts, strict=True)
        }


class Difference(NamedTuple):
    """Difference between two calls: its weight, its text, and `of` which argument."""

    weight: int
    text: str
    what: str
    of: str = ""


def differences(
    new: Signature, old: Signature, root: Callable[[Place], str]
) -> Iterator[Difference]:
    """Yield the differences of a new call from an old one; `root` names arguments."""
    before = old.arguments_by_place()
    for place, (part, key, types) in new.arguments_by_place().items():
        name = root(place)
        if place not in before:
            yield Difference(2, f"{name} is given", "arguments")
            continue
        part_before, key_before, types_before = before.pop(place)
        if key != key_before:
            values = isinstance(part, Static) and isinstance(part_before, Static)
            text = f"{name} is {part}, and was {part_before}"
            yield (
                Difference(1, text, "value", name)
                if values
                else Difference(2, text, "containers", name)
            )
        elif not isinstance(part, Static) and types != types_before:
            yield from _type_differences(part, name, types, types_before)
    for place in before:
        yield Difference(2, f"{root(place)} is not given", "arguments")
    if new.default != old.default:
        text = f"the default dtype is {new.default}, and was {old.default}"
        yield Difference(1, text, "default dtype")
    if new.kind is not old.kind:
        text = f"tensors are of {new.kind.__module__}, and were of {old.kind.__module__}"
        yield Difference(1, text, "class of tensors")


def _type_differences(
    part: tree.Structure, name: str, new: Sequence[_Type], old: Sequence[_Type]
) -> Iterator[Difference]:
    """Yield the differences between the arrays in equal containers."""
    for path, one, other in zip(tree.paths_of(part, name), new, old, strict=True):
        if one != other:
            moved = (one[0] != other[0]) + (one[1] != other[1])
            text = f"{path} is {TensorType(*one)}, and was {TensorType(*other)}"
            yield Difference(moved, text, "shape" if one[0] != other[0] else "dtype", name)


@final
class Call:
    """Arguments of a call of a compiled function, and the arrays in them.

    `found` are the arrays as given, `leaves` those that the kernel takes.
    """

    __slots__ = (
        "_takes_specs",
        "found",
        "leaves",
        "parameters",
        "signature",
        "values",
    )

    def __init__(
        self,
        parameters: Parameters,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        specs: bool = False,
    ) -> None:
        self.parameters = parameters
        self._takes_specs = specs
        self.values = _arguments_by_place(parameters.ordered, args, kwargs)
        self.found: list[Any] = []
        arguments: list[tuple[Place, Part]] = []
        parts: list[Hashable] = []
        for place, value in self.values.items():
            if place in parameters.statics:
                part: Part = Static(value)
                parts.append(self._key(place, value))
            else:
                leaves, part = tree.flatten(value)
                self.found += leaves
                parts.append(self._structure_key(place, part))
            arguments.append((place, part))
        floats = _float_dtype(self.found)
        self.leaves = [self._array(arguments, i, x, floats) for i, x in enumerate(self.found)]
        given = any(isinstance(x, Handle) for x in self.found)
        kind = stand_in_class(tensors.family_of(self.found)) if given else Variable
        types = self._types(arguments)
        self.signature = Signature(tuple(arguments), tuple(parts), types, get_default_dtype(), kind)

    def _key(self, place: Place, value: Any) -> Hashable:
        """Return the key of a static value. Raises `ArgumentError` if it cannot be hashed."""
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                f"jit: {self.parameters.root(place)} is static, and {type(value).__name__} "
                f"{value!r:.60} cannot be hashed",
                hint="give a tuple for a list, or let it be traced",
            ) from None
        return bits(value)

    def _structure_key(self, place: Place, part: tree.Structure) -> Hashable:
        """Return the key of containers; keys in them are compared like static values."""
        if part.kind is None:
            return None
        rest = None if part.rest is None else self._key(place, part.rest)
        parts = tuple([self._structure_key(place, p) for p in part.parts])
        return part.kind, bits(part.keys), parts, rest

    def _array(
        self, arguments: Sequence[tuple[Place, Part]], number: int, leaf: Any, floats: DType
    ) -> Any:
        """Convert a leaf to an array or a tensor; Python floats get the dtype `floats`."""
        if isinstance(leaf, Handle) or (type(leaf) is np.ndarray and leaf.dtype in NAME_OF_DTYPE):
            return leaf
        if self._takes_specs and isinstance(leaf, TensorType):
            return leaf
        try:
            if is_array(leaf):
                return array_of(leaf, floats if type(leaf) is float else None)
        except PrimgraphError as error:
            error.message = f"jit: {self._paths(arguments)[number]}: {error.message}"
            raise
        raise ArgumentError(
            f"jit: {self._paths(arguments)[number]} is {type(leaf).__name__} {leaf!r:.60}, not "
            "an array",
            hint="f.kernel(pg.spec(shape)) compiles for a type, and the call takes arrays"
            if isinstance(leaf, TensorType)
            else "name arguments that are no arrays in static_argnames",
        )

    def _types(self, arguments: Sequence[tuple[Place, Part]]) -> tuple[_Type, ...]:
        """Return the types that the call is compiled for; shapes may be symbolic."""
        types = [(x.shape, x.dtype) for x in self.leaves]
        sizes = self.parameters.sizes
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

    def _paths(self, arguments: Sequence[tuple[Place, Part]]) -> list[str]:
        """Return the names of all arrays in messages."""
        return [
            path
            for place, part in arguments
            if isinstance(part, tree.Structure)
            for path in tree.paths_of(part, self.parameters.root(place))
        ]

    def statics(self) -> dict[str, Any]:
        """Return the static arguments by name."""
        pairs = self.signature.arguments
        return {self.parameters.root(p): s.value for p, s in pairs if isinstance(s, Static)}

    def arguments(self, arrays: Iterable[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments by position and by name, with other arrays in them."""
        waiting = iter(arrays)
        args: list[Any] = []
        named: dict[str, Any] = {}
        for place, part in self.signature.arguments:
            value = self.values[place]
            if isinstance(part, tree.Structure):
                value = tree.unflatten(part, [next(waiting) for _ in range(tree.count(part))])
            if isinstance(place, str):
                named[place] = value
            else:
                args.append(value)
        return args, named


def _arguments_by_place(
    ordered: Sequence[str], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[Place, Any]:
    """Return the arguments by place: an argument has one place, by position or by name."""
    values: dict[Place, Any] = {**dict(enumerate(args))}
    for number, name in enumerate(ordered[len(args) :] if kwargs else (), len(args)):
        if name not in kwargs:
            break
        values[number] = kwargs[name]
    moved = ordered[len(args) : len(values)]
    values.update((name, value) for name, value in kwargs.items() if name not in moved)
    return values


def _count(part: Part) -> int:
    return 0 if isinstance(part, Static) else tree.count(part)


def _float_dtype(leaves: Iterable[Any]) -> DType:
    """Return the dtype of Python floats: the widest of the float arrays, or else the default."""
    found = {x.dtype for x in leaves if isinstance(x, Handle | np.ndarray) and x.dtype.kind == "f"}
    return np.result_type(*found) if found else get_default_dtype()


# Parameters of the function.

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def declared_sizes(sizes: Mapping[str, Any]) -> dict[str, Shape]:
    """Return the shapes of arrays; None and -1 become new symbolic sizes."""
    taken: set[str] = set()
    for shape in sizes.values():
        named = [n for n in shape if isinstance(n, str | Dim)] if isinstance(shape, tuple) else ()
        taken |= names_in(declared_shape(named))
    found: dict[str, Shape] = {}
    for name, shape in sizes.items():
        found[name] = declared_shape(shape, name, taken)
        taken |= names_in(found[name])
    return found


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):
        return []


def names_in_order(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """Return the parameters that can be given by position and by name."""
    kinds = [(p.name, p.kind is p.POSITIONAL_OR_KEYWORD) for p in parameters]
    return [name for name, either in kinds if either] if all(e for _, e in kinds) else []


def static_places(
    parameters: Sequence[inspect.Parameter], places: Sequence[int], names: Sequence[str]
) -> frozenset[Place]:
    """Return the places of static arguments: by position and by name, if they have both.

    Raises `ArgumentError` for a name or a position that the function does not have.
    """
    found: set[Place] = {*places, *names}
    ordered = [p.name for p in parameters if p.kind in POSITIONAL]
    if parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = [p.name for p in parameters]
        for name in names:
            if name not in known:
                raise ArgumentError(
                    f"jit: there is no argument {name!r:.60}",
                    hint=f"the function takes {', '.join(map(repr, known))}",
                )
    is_open = not parameters or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for place in places:
        if not is_open and not -len(ordered) <= place < len(ordered):
            raise ArgumentError(
                f"jit: static_argnums has {place}, but the function has {len(ordered)} positional "
                f"argument{'' if len(ordered) == 1 else 's'}",
                hint=f"the first one has number 0; the function takes {', '.join(ordered)}",
            )
        if -len(ordered) <= place < len(ordered):
            found |= {place % len(ordered), ordered[place]}
    found |= {i for i, name in enumerate(ordered) if name in names}
    return frozenset(found)
