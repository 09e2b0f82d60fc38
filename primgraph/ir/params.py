"""Parameters of equations: hashable data, compared bit by bit."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import count
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeAlias, final
from weakref import WeakValueDictionary

import numpy as np

from primgraph.base.interpreter_limits import require_nesting
from primgraph.base.providers import late
from primgraph.errors import ArgumentError
from primgraph.ir.dims import Dim
from primgraph.ir.types import NAME_OF_DTYPE, TensorType, as_dtype

if TYPE_CHECKING:
    import zlib
else:
    zlib = late("zlib")


Params: TypeAlias = tuple[tuple[str, Any], ...]

_INTEGERS = frozenset({int})

# Arrays up to this size are copied for hashing, which is faster for them.
_COPIED = 2**14

# Prefix of the hash of an array in text.
HASHED = "sha256:"


@final
class Array:
    """Frozen array: a private read-only copy, compared bit by bit.

    `0.0` and `-0.0` differ, a NaN equals the same NaN, and dtype and shape count. `name` is the
    user's name of it, if there is one, and does not count.
    """

    __slots__ = ("_digest", "_hash", "data", "name")

    def __init__(self, data: Any, name: str = "") -> None:
        self.name = name
        array = np.array(data, order="C", copy=True)
        array = array.astype(as_dtype(array.dtype), copy=False)
        array.setflags(write=False)
        self.data: np.ndarray[Any, Any] = array
        large = array.nbytes > _COPIED
        content = zlib.crc32(_bytes_of(array)) if large else array.tobytes()
        self._hash = hash((array.dtype.str, array.shape, content))
        self._digest = ""

    @property
    def type(self) -> TensorType:
        return TensorType(self.data.shape, self.data.dtype)

    @property
    def digest(self) -> str:
        """SHA-256 hash of type and elements, equal on all machines."""
        if not self._digest:
            found = importlib.import_module("hashlib").sha256(str(self.type).encode())
            found.update(_bytes_of(self.little_endian()))
            self._digest = found.hexdigest()
        return self._digest

    def little_endian(self) -> np.ndarray[Any, Any]:
        """Elements in little-endian byte order, as in text and files."""
        return self.data.astype(self.data.dtype.newbyteorder("<"), copy=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and self._hash == other._hash
            and self.data.dtype == other.data.dtype
            and self.data.shape == other.data.shape
            and self.data.tobytes() == other.data.tobytes()
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Array({self.type})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (self.data,)


# Classes whose objects equal only objects of the same class, bit by bit.
_PLAIN = frozenset({int, str, NoneType, Dim, Array})


class Nested:
    """Graph as a parameter of an equation, hashable and equal bit by bit."""

    __slots__ = ()

    @property
    def nesting(self) -> int:
        """Nesting depth of the graphs within it."""
        raise NotImplementedError


class Named:
    """Object as a parameter, equal only to itself, and printed as its name.

    Names are unique: a number is appended to a name in use. Reading an unknown name creates a
    placeholder, until an object of that name is created.
    """

    __slots__ = ("__weakref__", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        while type(_named.get(self.name)) not in (NoneType, Named):
            self.name = f"{name}#{next(_numbers)}"
        _named[self.name] = self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find_named, (self.name,)

    def __copy__(self) -> Named:
        return self

    def __deepcopy__(self, memo: Any) -> Named:
        return self


_numbers = count(2)
_named: WeakValueDictionary[str, Named] = WeakValueDictionary()


def find_named(name: str) -> Named:
    """Return the object of that name, or a placeholder."""
    found = _named.get(name)
    return Named(name) if found is None else found


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the bytes of a contiguous array without copying."""
    flat = array.reshape(-1).view(np.uint8)
    flat.setflags(write=False)
    return flat.data


def freeze(value: Any) -> Any:
    """Freeze `value` as parameter data: NumPy scalars become Python scalars, lists become
    tuples."""
    kind = type(value)
    if kind in (int, bool, str, Array, Dim) or value is None:
        return value
    if kind is float:
        # All NaNs become one NaN, so that text and source can print each parameter exactly.
        return value if value == value else float("nan")
    if kind is complex:
        return complex(freeze(value.real), freeze(value.imag))
    if kind is tuple or kind is list:
        if _INTEGERS.issuperset(map(type, value)):
            return tuple(value)
        return tuple([freeze(v) for v in value])
    if isinstance(value, np.dtype):
        return value if value in NAME_OF_DTYPE else as_dtype(value)
    if isinstance(value, type):
        return as_dtype(value)
    if isinstance(value, np.generic):
        return freeze(value.item())
    if isinstance(value, np.ndarray):
        return Array(value)
    if isinstance(value, Nested):
        require_nesting(value.nesting + 1)
        return value
    if isinstance(value, Named):
        return value
    raise ArgumentError(f"a parameter is plain data, not {kind.__name__} {value!r}")


def freeze_all(params: Iterable[tuple[str, Any]]) -> Params:
    """Freeze named parameters and sort them by name."""
    return tuple(sorted([(name, freeze(value)) for name, value in params]))


def bits(value: Any) -> Hashable:
    """Return a key that is equal only for equal classes and bits.

    `1`, `1.0` and `True` differ, `0.0` and `-0.0` too, at every depth of tuples, frozen sets,
    slices, ranges, and dataclasses compared by field. A NaN equals a NaN. Objects of other classes
    are compared by their own equality. A tuple in a key whose first item is a class never stands
    for a tuple, so that keys are unique.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind is tuple:
        return tuple([v if type(v) in _PLAIN else bits(v) for v in value])
    if kind is float:
        return (float, value if value and value == value else value.hex())
    if kind is bool:
        return (bool, value)
    if isinstance(value, np.dtype):
        # NumPy has two classes for one dtype if `long` and `long long` have the same width.
        return (np.dtype, NAME_OF_DTYPE.get(value, value))
    return (kind, _content(kind, value))


def _content(kind: type[Any], value: Any) -> Hashable:
    """Return the key of a value among those of its class."""
    if isinstance(value, np.generic):
        item = value.item()
        return (value.dtype.str, repr(value) if isinstance(item, np.generic) else bits(item))
    if isinstance(value, float):
        return float.hex(value)
    if isinstance(value, complex):
        return (value.real.hex(), value.imag.hex())
    if isinstance(value, tuple):
        return tuple([bits(v) for v in value])
    if isinstance(value, frozenset):
        return frozenset(Counter(map(bits, value)).items())
    if kind is slice or kind is range:
        return bits((value.start, value.stop, value.step))
    if kind is getattr(sys.modules.get("decimal"), "Decimal", None):
        return bits(value.as_tuple())
    if _compares_fields(kind):
        fields = tuple([getattr(value, f.name) for f in dataclasses.fields(value) if f.compare])
        if _is_hashable(fields):
            return bits(fields)
    return value if isinstance(value, Hashable) else repr(value)


def _compares_fields(kind: type[Any]) -> bool:
    """Return whether objects of a class are equal by the `__eq__` that `dataclass` generates."""
    if not dataclasses.is_dataclass(kind):
        return False
    # The decorator keeps a user's method, and compiles its own from a string.
    code = getattr(kind.__eq__, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _plain_values(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return names, classes and values of `params`, equal only for equal bits.

    It is empty if a value is of another class than the usual ones, or a float that differs from
    one that it equals, or the other way round: a zero or a NaN.
    """
    found: list[Any] = []
    for name, value in params.items():
        kind = type(value)
        if kind is tuple:
            if not _INTEGERS.issuperset(map(type, value)):
                return ()
        elif kind is float:
            if not value or value != value:
                return ()
        elif kind not in _BY_VALUE and not (isinstance(value, np.dtype) and value in NAME_OF_DTYPE):
            return ()
        found += name, kind, value
    return tuple(found)


# Classes whose equal objects have the same bits.
_BY_VALUE = frozenset({int, str, bool, NoneType})


@final
class InternedParams:
    """Table of parameters, in which equal ones are one tuple."""

    __slots__ = ("_by_bits", "_by_id", "_by_values")

    def __init__(self) -> None:
        self._by_bits: dict[Hashable, Params] = {}
        # Interned parameters, by the names, classes and values that calls give.
        self._by_values: dict[tuple[Any, ...], Params] = {}
        # Interned parameters, by the id of equal ones.
        self._by_id: dict[int, tuple[Params, Params]] = {}

    def frozen(self, params: Mapping[str, Any]) -> Params:
        """Freeze and intern `params`."""
        given = _plain_values(params)
        known = self._by_values.get(given) if given else None
        if known is None:
            frozen = tuple(sorted(params.items())) if given else freeze_all(params.items())
            known = self._by_bits.setdefault(bits(frozen), frozen)
            if given:
                self._by_values[given] = known
        return known

    def own(self, params: Params) -> Params:
        """Intern frozen parameters, such as those of an equation of another graph."""
        found = self._by_id.get(id(params))
        if found is None:
            own = self._by_bits.setdefault(bits(params), params)
            found = self._by_id[id(params)] = params, own
        return found[1]
