"""Tensor: a lazily computed array that records its history."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from primgraph.base.providers import provider
from primgraph.eager.array_elements import elements_of
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.backward import backward, list_tensors
from primgraph.eager.derivatives.differentiable import Differentiable
from primgraph.eager.inplace.in_place import change, set_elements
from primgraph.eager.inplace.indexing import elements_at
from primgraph.eager.inplace.views import View, share_all, share_part
from primgraph.eager.node import array_node
from primgraph.eager.run import compute, source_of
from primgraph.errors import ArgumentError, BuildError, DTypeError
from primgraph.ir.frontend.html_tables import facts
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.types import NAME_OF_DTYPE
from primgraph.operators import advice
from primgraph.operators.call import appliers
from primgraph.operators.handle import array_functions, object_for_sparse
from primgraph.operators.lazy_loading import functions, named_function
from primgraph.program.sharing import Share


class Tensor(Differentiable["Tensor"]):
    """An eager array that remembers how it was computed.

    Shape, dtype and errors are known at once. Elements are computed when they are read: by
    `numpy()`, `item()`, `float(x)`, `print(x)`, `np.asarray(x)`, or a comparison in an `if`.
    Operators and methods are those of all arrays of primgraph.

    In-place operations give this tensor a new value, and with it its base and all views. Earlier
    results keep the former value, so that their gradients stay right.

    A subclass has other manners: what is computed with one of its tensors, gradients too, are
    tensors of its `family`, which is the subclass itself unless it says otherwise.

    >>> x = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> pg.sum(x * x).backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("_label", "_shares")
    family: type[Tensor]
    writes_through: ClassVar[bool] = True
    _called = "a tensor"
    _has_elements = True
    # Only parameters have these: the name in programs and optimizers, and the shared storages.
    _label: str
    _shares: list[Share]
    # The class of copies, which share nothing with programs.
    plain: ClassVar[type[Tensor]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "family" not in vars(cls):
            cls.family = cls
        if "plain" not in vars(cls):
            cls.plain = cls
        appliers[cls] = appliers[Tensor]
        _add_plain_family(cls)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add the gradients of this tensor, times `gradient`, to `.grad` of the leaves.

        See `pg.autograd.backward`.
        """
        backward(self, [gradient], retain_graph, create_graph, inputs)

    # In-place operations.

    def __iadd__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self + other, augmented=True)

    def __isub__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self - other, augmented=True)

    def __imul__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self * other, augmented=True)

    def __itruediv__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self / other, augmented=True)

    def __ifloordiv__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self // other, augmented=True)

    def __imod__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self % other, augmented=True)

    def __ipow__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self**other, augmented=True)

    def __imatmul__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self @ other, augmented=True)

    def __iand__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self & other, augmented=True)

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self | other, augmented=True)

    def __ixor__(self, other: Any) -> Self:  # type: ignore[misc]
        return change(self, self ^ other, augmented=True)

    def __getitem__(self, index: Any) -> Self:
        found = elements_at(self, index)
        if self.writes_through and isinstance(found, Tensor):
            alias = found._alias
            if not isinstance(alias, View) or alias.source() is not self:
                share_part(found, self, index)
        return found

    def detach(self) -> Tensor:
        found = super().detach()
        if self.shares_detached and isinstance(found, Tensor):
            share_all(found, self)
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        set_elements(self, index, value)

    def conj(self) -> Any:
        """Return the complex conjugate; a real tensor is returned itself."""
        if self.type.is_complex or self.shares_detached:
            return named_function("conj")(self)
        return self

    conjugate = conj

    def change_to(self, found: Any) -> None:
        """Show the elements of `found`, of the same shape, from now on."""
        change(self, functions["asarray"](found))

    def _laid_out(self, order: str) -> Tensor:
        """Return this tensor if NumPy's array would have that memory order, else a copy."""
        alias = self._alias
        layout = alias.layout() if isinstance(alias, View) else np.empty(self.shape, np.int8)
        if layout is None or order not in ("C", "F"):
            return self
        flags = layout.flags
        is_so = flags.c_contiguous if order == "C" else flags.f_contiguous
        return self if is_so else self.clone()

    def add_(self, other: Any) -> Self:
        """Compute `x += other`."""
        return change(self, self + other)

    def sub_(self, other: Any) -> Self:
        """Compute `x -= other`."""
        return change(self, self - other)

    def mul_(self, other: Any) -> Self:
        """Compute `x *= other`."""
        return change(self, self * other)

    def div_(self, other: Any) -> Self:
        """Compute `x /= other`."""
        return change(self, self / other)

    def copy_(self, other: Any) -> Self:
        """Copy `other` into this tensor, broadcast and converted."""
        found = functions["broadcast_to"](functions["astype"](other, self.dtype), self.shape)
        return change(self, found)

    def fill_(self, number: float) -> Self:
        """Set all elements to `number`."""
        known = self.node.type
        if type(number) is int and number == 0:
            array = np.zeros(known.shape, known.dtype)
        else:
            array = np.full(known.shape, number, known.dtype)
        return change(self, Tensor(array_node(array)))

    def fill(self, value: Any) -> None:
        """Set all elements to `value`, like `numpy.ndarray.fill`."""
        self[...] = value

    def zero_(self) -> Self:
        """Set all elements to zero."""
        return self.fill_(0)

    # Reading elements.

    def numpy(self) -> npt.NDArray[Any]:
        """Return a copy of the elements as an array."""
        return self._array().copy()

    def _array(self) -> npt.NDArray[Any]:
        node = self.node
        if node.array is None:
            compute([node])
        assert node.array is not None
        return node.array

    def item(self) -> Any:
        """Return the element of a tensor of size 1 as a Python number; otherwise
        `ArgumentError`."""
        if self.size != 1:
            raise ArgumentError(
                f"item() is for tensors of one element, and this is {self.type}",
                hint="x.numpy() gives all elements",
            )
        return self._array().item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return self._array().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentError(
                f"the truth of {self.type} is ambiguous: it has {self.size} elements",
                hint=f"{advice.hint_truth_value()}; pg.any(x) and pg.all(x) have one element",
            )
        return bool(self._array().item())

    def __float__(self) -> float:
        """Return the number; an error in a function being differentiated, as its derivative is
        lost."""
        self._require_no_loss()
        if self.size != 1:
            raise ArgumentError(
                f"a tensor of one element can become a number, and this is {self.type}",
                hint=advice.hint_number(array_functions(), "x.numpy() has all elements"),
            )
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        self._require_no_loss()
        return complex(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise DTypeError(f"an index is an integer, not {self.type}")
        return int(self.item())

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self._array() == np.asarray(item)))

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec else str(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the elements, in a read-only array unless `copy`.

        Raises `BuildError` in a function that is being differentiated, as the derivative would be
        lost; integers have none.
        """
        if (found := object_for_sparse(self, sys._getframe(1))) is not None:
            return found
        if dtype is None or np.dtype(dtype).kind not in "biu":
            self._require_no_loss()
        array = self._array()
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            return array.astype(array.dtype if dtype is None else dtype)
        view = array.view()
        view.flags.writeable = False
        return view

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """Export a copy of the elements by DLPack, or with `copy=False` the elements themselves.

        Those never change: they are marked as read-only from version 1.0 of DLPack on, and before
        it is for the other library not to write to them.

        Raises `BuildError` in a function that is being differentiated.
        """
        self._require_no_loss()
        # NumPy 2.0 accepts `stream` only, so options that are not set are not passed.
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
        asked = {name: value for name, value in given.items() if value is not None}
        array = self._array().view() if copy is False else self._array().copy()
        array.flags.writeable = copy is not False or max_version is None or max_version < (1, 0)
        return array.__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the DLPack device of the elements: that of NumPy's arrays."""
        return self._array().__dlpack_device__()

    def _require_no_loss(self) -> None:
        """Raise if a conversion to numbers would lose derivatives."""
        if self.node.tracked and recording.is_followed.get() and recording.is_on.get():
            raise BuildError(
                "numbers alone would lose the derivatives that are taken of this function",
                hint="an array that tensors are assigned to is made by np.copy(...) in the "
                "function; the functions of primgraph.numpy take tensors, in lists too; x.item(), "
                "x.numpy() and x.detach() are numbers on purpose",
            )

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Dispatch a NumPy function to primgraph's; to NumPy itself if no result is
        differentiable."""
        if func in _OF_ELEMENTS:
            named = {name: _elements(value) for name, value in kwargs.items()}
            return func(*map(_elements, args), **named)
        return super().__array_function__(func, types, args, kwargs)

    def _instead(self, name: str, called: str) -> str:
        return f"{called}(x.numpy()) gives an array, through which no derivative goes"

    def __repr__(self) -> str:
        text = np.array2string(self._array(), separator=", ", prefix="tensor(")
        notes = "" if self.dtype == np.float64 else f", dtype={self.dtype}"
        return f"tensor({text}{notes}{', requires_grad=True' if self.node.tracked else ''})"

    def _repr_html_(self) -> str:
        place = source_of(self.node)
        known = [
            ("type", str(self.type)),
            ("elements", _format_elements(self._array())),
            ("requires_grad", "True" if self.node.tracked else ""),
            ("line", "" if place is None else f"{place}   {place.text}".rstrip()),
        ]
        return facts("Tensor", known).html()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_tensor, (self.plain, self._array(), self.node.tracked)

    def __copy__(self) -> Tensor:
        return _rebuild_tensor(self.plain, self._array(), self.node.tracked)

    def __deepcopy__(self, memo: Any) -> Tensor:
        """Copy a leaf with its gradient. Raises `BuildError` for a tensor that is not a leaf."""
        if not self.is_leaf:
            raise BuildError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol",
                hint="copy x.detach()",
            )
        found = _rebuild_tensor(self.plain, self._array(), self.node.tracked)
        memo[id(self)] = found
        if self._backward is not None and self._backward.gradient is not None:
            found.kept().gradient = deepcopy(self._backward.gradient, memo)
        return found


def _format_elements(array: np.ndarray[Any, Any]) -> str:
    """Return the elements as a notebook shows them: those at the edges of a large array."""
    edge = 2 if array.ndim < 3 else 1
    return np.array2string(array, precision=4, threshold=20, edgeitems=edge)


# What NumPy is asked about elements, and what it does with them elsewhere.
_OF_ELEMENTS = frozenset(
    (
        np.allclose, np.array2string, np.array_equal, np.array_equiv, np.array_repr, np.array_str,
        np.isclose, np.ndim, np.save, np.savetxt, np.savez, np.shape,
    )
)  # fmt: skip


def _elements(argument: Any) -> Any:
    return argument._array() if isinstance(argument, Tensor) else argument


def _rebuild_tensor(kind: type[Tensor], array: npt.NDArray[Any], tracked: bool) -> Tensor:
    return kind(array_node(np.array(array), tracked))


def _apply_first(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Apply an operator to tensors for the first time."""
    return provider("operators of tensors").apply(function, args, kwargs)


appliers[Tensor] = _apply_first
Tensor.family = Tensor.plain = Tensor
# The family by class, for classes whose tensors without an alias show their last node.
plain_families: dict[type, type[Tensor]] = {}


def _add_plain_family(kind: type[Tensor]) -> None:
    if kind.node is Differentiable.node:
        plain_families[kind] = kind.family


_add_plain_family(Tensor)
# One tensor, or several.
Tensors: TypeAlias = Tensor | Sequence[Tensor]


def tensors_in(given: Any) -> list[Tensor]:
    """Return one tensor, or several in a list, tuple or iterator, as a list.

    Raises `ArgumentError` for all else.
    """
    found: list[Any] = list_tensors(given)
    return found


def family_of(arguments: Iterable[Any]) -> type[Tensor]:
    """Return the family of the first tensor in `arguments` that is of a subclass."""
    for argument in arguments:
        if isinstance(argument, Tensor) and argument.family is not Tensor:
            return argument.family
    return Tensor


# Dtypes that are used without conversion.
_PLAIN = frozenset(NAME_OF_DTYPE)


@checked_late
def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of the elements of `data`: an array, a number, nested lists, or a tensor.

    Elements are copied. NumPy arrays and numbers keep their dtype; Python floats get the default
    dtype, unless `dtype` is given. With `requires_grad` the tensor is a leaf: `backward` adds
    gradients to its `.grad`.

    Raises `ArgumentError` for other data, `DTypeError` for an unsupported dtype and for integers
    that require a gradient.

    >>> w = pg.tensor([1.0, 2.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> w.grad
    tensor([2., 4.])
    """
    if not isinstance(requires_grad, bool):
        raise ArgumentError(f"requires_grad is True or False, not {requires_grad!r:.60}")
    if type(data) is np.ndarray and dtype is None and not requires_grad and data.dtype in _PLAIN:
        return Tensor(array_node(data.copy()))
    array = elements_of(data._array() if isinstance(data, Tensor) else data, dtype)
    if requires_grad and array.dtype.kind not in "fc":
        raise DTypeError(
            f"only floats have derivatives, and this tensor is of {array.dtype}",
            hint="give dtype='float64', or leave out requires_grad",
        )
    return Tensor(array_node(np.array(array), requires_grad))
