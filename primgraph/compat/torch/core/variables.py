"""Variables with torch's methods, which change in place with their views."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from primgraph.base.user_lines import is_own
from primgraph.compat.torch.core.in_place import in_dtype_of
from primgraph.compat.torch.core.indices import as_masks, checked_index
from primgraph.compat.torch.core.methods import TensorMethods
from primgraph.compat.torch.core.tensor_types import CallableType
from primgraph.errors import BuildError, UnknownValueError
from primgraph.ir.types import TensorType
from primgraph.numpy.aliasing import VIEWS, Family
from primgraph.numpy.changing import ChangingArray
from primgraph.operators.handle import Handle

# Functions that return views in NumPy, and copies in torch.
_COPYING = ("diag", "einsum", "flip", "fliplr", "flipud", "rot90")
# Functions beside those of elements whose results may lie in memory in another order.
_KEEPING = ("astype", "assign", "clip", "einsum", "tensordot", "where", "stop_gradient")


def _is_elementwise(name: str) -> bool:
    return name != "matmul" and isinstance(getattr(np, name, None), np.ufunc)


class Variable(TensorMethods, ChangingArray):
    """`pg.Variable` with torch's methods: what stands for tensors in functions that are traced.

    It changes in place with its views, as tensors do. A change of an argument of the function stays
    within it.
    """

    __slots__ = ()
    # The class of tensors that its methods make.
    family: ClassVar[Any]

    @property
    def type(self) -> TensorType:
        """Shape and dtype; see `Tensor.type`."""
        plain = self.value.type
        return plain if is_own(sys._getframe(1)) else CallableType(self, plain)

    @property
    def data(self) -> Self:
        """The same numbers as a constant for differentiation."""
        return self.detach()

    def detach(self) -> Self:
        """Return the same numbers as a constant for differentiation.

        After a change in place of one of the two, the other raises an error where it is used.
        """
        found: Self = super().detach()  # type: ignore[assignment]
        self._share_perhaps(found)
        return found

    def _share_perhaps(self, other: Self) -> None:
        """Let `other` raise an error where it is used after a change of this, and the reverse."""
        if self._family is None:
            self._family, self._seen = Family(), 0
        other._may_see(self._family)

    def contiguous(self, memory_format: Any = None) -> Self:
        """Return itself, or a copy of a view whose elements lie in another order."""
        layout = self._layout()
        if layout is not None and layout.flags.c_contiguous:
            return self
        found: Self = self._dispatch("assign", self)
        if layout is None:
            self._share_perhaps(found)
        return found

    def item(self) -> NoReturn:
        """Raise `UnknownValueError`: there is no number while a function is traced."""
        raise UnknownValueError(
            "vmap: It looks like you're calling .item() on a Tensor. There is no number while a "
            "function is traced",
            hint="compute with the tensor itself",
        )

    tolist = item

    def backward(self, *args: Any, **options: Any) -> NoReturn:
        """Raise `BuildError`: variables have no `.grad`."""
        raise BuildError(
            "backward is for tensors, and this is a variable of a function that is traced",
            hint="torch.autograd.grad(y, x) returns gradients here",
        )

    @classmethod
    def returned(
        cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: Any
    ) -> Any:
        """Return the result of a function, as a view if torch returns one.

        New results lie in memory in order, unless they keep the order of operands.
        """
        name = function.__name__
        if name in _COPYING:
            return found
        if name in ("conj", "positive") and not args[0].type.is_complex:
            return args[0]
        found = super().returned(function, args, kwargs, found)
        if name not in VIEWS and name not in _KEEPING and not _is_elementwise(name):
            for item in found if isinstance(found, list | tuple) else [found]:
                if isinstance(item, ChangingArray):
                    item.is_in_order = True
        return found

    # In place: the variable, and all that shares its elements, means other elements from now on.

    def change_in_place(self, value: Any) -> Self:
        """Mean a value of the same shape from now on."""
        self.change_to(value)
        return self

    def _change_in_place(self, name: str, other: Any) -> Self:
        return self.change_in_place(in_dtype_of(self, self._dispatch(name, self, other)))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(checked_index(as_masks(index)), value)

    def copy_(self, src: Any, non_blocking: bool = False) -> Self:
        """Take the elements of `src`, broadcast and converted."""
        self[...] = src._astype(self.value.type.dtype) if isinstance(src, TensorMethods) else src
        return self

    def fill_(self, value: Any) -> Self:
        """Set all elements to a number."""
        return self.copy_(value)

    def zero_(self) -> Self:
        """Set all elements to zero."""
        return self.copy_(0)

    def reshape_in_place(self, value: Handle) -> NoReturn:
        """Raise `BuildError`: a variable keeps its shape."""
        raise BuildError(
            "the shape of a variable of a function that is traced does not change",
            hint="y = x.squeeze() has another shape, without the underscore",
        )
