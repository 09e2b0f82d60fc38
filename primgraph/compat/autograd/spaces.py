"""The vector spaces of values: arrays, containers of them, and objects of the user's classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, final

import numpy as np

from primgraph import tree
from primgraph.errors import MissingRuleError, NotDifferentiable
from primgraph.numpy.door import recording_wrapper
from primgraph.operators.handle import Handle

_conj, _ravel, _real, _dot = (recording_wrapper(f) for f in (np.conj, np.ravel, np.real, np.dot))


class VSpace:
    """Base class of the vector spaces of the user's classes: `register` names the class of values.

    A subclass defines `zeros` and `_add`, and `randn`, `_scalar_mul`, `_inner_prod` and
    `_covector` where they are used. `vspace` makes one of a value.

    >>> from primgraph.compat.autograd.extend import VSpace, vspace
    >>> class Text(str):
    ...     pass
    >>> class Texts(VSpace):
    ...     def zeros(self):
    ...         return Text()
    >>> Texts.register(Text)
    >>> vspace(Text("a")).add(Text("a"), Text("b"))
    'ab'
    """

    mappings: ClassVar[dict[type[Any], Callable[[Any], VSpace]]] = {}

    def __init__(self, value: Any) -> None:
        pass

    @property
    def iscomplex(self) -> bool:
        """Whether there are complex numbers in it; a class may define `iscomplex = True`."""
        return False

    @classmethod
    def register(
        cls, value_type: type[Any], vspace_maker: Callable[[Any], VSpace] | None = None
    ) -> None:
        """Let values of a class have this space, or the one that `vspace_maker(value)` makes."""
        VSpace.mappings[value_type] = vspace_maker or cls

    @property
    def size(self) -> int:
        """The number of its real dimensions."""
        raise self._undefined("size")

    def zeros(self) -> Any:
        """The zero of it."""
        raise self._undefined("zeros")

    def ones(self) -> Any:
        """The sum of the standard basis."""
        raise self._undefined("ones")

    def standard_basis(self) -> Iterator[Any]:
        """The elements of the standard basis."""
        raise self._undefined("standard_basis")

    def randn(self) -> Any:
        """A random element."""
        raise self._undefined("randn")

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two elements."""
        return self._add(x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """An element times a number."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The inner product, a real number."""
        return self._inner_prod(x, y)

    def covector(self, x: Any) -> Any:
        """The element that multiplies as this one does in an inner product: its conjugate."""
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return x * a

    def _inner_prod(self, x: Any, y: Any) -> Any:
        raise self._undefined("_inner_prod")

    def _covector(self, x: Any) -> Any:
        return x

    def _undefined(self, name: str) -> MissingRuleError:
        return MissingRuleError(f"{type(self).__name__}, a vector space, does not define {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{vars(self)}"


@final
class ArraySpace(VSpace):
    """The space of a value: its containers, and the shapes and dtypes of the arrays in them."""

    def __init__(self, value: Any) -> None:
        leaves, self._structure = tree.flatten(value)
        self._types = tuple([_type_of(leaf) for leaf in leaves])

    @property
    def shape(self) -> Any:
        """Shape of an array; for a container, the spaces of its parts."""
        if self._structure == tree.LEAF:
            return self._types[0][0]
        return tree.unflatten(self._structure, [vspace(np.zeros(*t)) for t in self._types])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of an array."""
        return self._types[0][1]

    @property
    def iscomplex(self) -> bool:
        """Whether there are complex numbers in it."""
        return any(dtype.kind == "c" for _, dtype in self._types)

    @property
    def size(self) -> int:
        """The number of its real dimensions."""
        counts = [
            int(np.prod(shape)) * (2 if dtype.kind == "c" else 1) for shape, dtype in self._types
        ]
        return sum(counts)

    @property
    def ndim(self) -> int:
        """Number of dimensions of an array."""
        return len(self._types[0][0])

    def _unflatten_arrays(self, arrays: Any) -> Any:
        return tree.unflatten(self._structure, [a[()] for a in arrays])

    def zeros(self) -> Any:
        """The zero of it."""
        return self._unflatten_arrays([np.zeros(*t) for t in self._types])

    def ones(self) -> Any:
        """Ones, and `1 + 1j` of complex numbers: the sum of the standard basis."""
        return self._unflatten_arrays(
            [
                np.full(shape, 1 + 1j if dtype.kind == "c" else 1, dtype)
                for shape, dtype in self._types
            ]
        )

    def randn(self) -> Any:
        """An element of normal numbers, of NumPy's global generator."""
        return self._unflatten_arrays([_normal(*t) for t in self._types])

    def standard_basis(self) -> Iterator[Any]:
        """Elements that are one at one place, or i, and zero elsewhere."""
        for place, (shape, dtype) in enumerate(self._types):
            units = (1, 1j) if dtype.kind == "c" else (1,)
            for index in np.ndindex(*shape):
                for unit in units:
                    arrays = [np.zeros(*t) for t in self._types]
                    arrays[place][index] = unit
                    yield self._unflatten_arrays(arrays)

    def _add(self, x: Any, y: Any) -> Any:
        return tree.map(lambda a, b: a + b, x, y)

    def _scalar_mul(self, x: Any, a: Any) -> Any:
        return tree.map(lambda leaf: leaf * a, x)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        pairs = zip(tree.leaves(x), tree.leaves(y), strict=True)
        products = [_real(_dot(_ravel(_conj(a)), _ravel(b))) for a, b in pairs]
        return sum(products[1:], start=products[0]) if products else 0.0

    def _covector(self, x: Any) -> Any:
        return tree.map(lambda leaf: _conj(leaf) if _type_of(leaf)[1].kind == "c" else leaf, x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArraySpace) and (self._structure, self._types) == (
            other._structure,
            other._types,
        )

    def __hash__(self) -> int:
        return hash((self._structure, self._types))

    def __repr__(self) -> str:
        named = [f"{dtype}{list(shape)}" for shape, dtype in self._types]
        return f"VSpace({tree.unflatten(self._structure, named)})"


def _type_of(leaf: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if isinstance(leaf, Handle):
        return leaf.shape, np.dtype(leaf.dtype)
    if isinstance(leaf, np.ndarray | np.generic) or type(leaf) in (float, complex):
        array = np.asarray(leaf)
        if array.dtype.kind in "fciu":
            return array.shape, array.dtype
    if type(leaf) is int:
        return (), np.dtype(np.float64)
    raise NotDifferentiable(f"{type(leaf).__name__} {leaf!r:.60} is an element of no vector space")


def _normal(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    # The generator is the one that programs and tests of autograd's seed.
    found: Any = np.random.standard_normal(shape)  # noqa: NPY002
    if dtype.kind == "c":
        found = found + 1j * np.random.standard_normal(shape)  # noqa: NPY002
    return np.asarray(found, dtype)


def vspace(value: Any) -> VSpace:
    """The space of a value; `NotDifferentiable`, a TypeError, for one that is in none."""
    return VSpace.mappings.get(type(value), ArraySpace)(value)
