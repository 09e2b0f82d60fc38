"""Variables with torch's methods, which change in place with their views."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, NoReturn, Self

from primgraph.base.user_lines import is_own
from primgraph.compat.torch.core.in_place import in_dtype_of
from primgraph.compat.torch.core.indices import as_masks, checked_index
from primgraph.compat.torch.core.methods import TensorMethods
from primgraph.compat.torch.core.tensor_types import CallableType
from primgraph.errors import BuildError, UnknownValueError
from primgraph.ir.types import TensorType
from primgraph.numpy.aliasing import Family
from primgraph.numpy.changing import ChangingArray
from primgraph.operators.handle import Handle


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
        if found is not self and isinstance(found, ChangingArray):
            if self._family is None:
                self._family, self._seen = Family(), 0
            found._may_see(self._family)
        return found

    def contiguous(self, memory_format: Any = None) -> Self:
        """Return itself, or a copy of a view whose elements lie in another order."""
        return self._laid_out("C")  # type: ignore[return-value]

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
