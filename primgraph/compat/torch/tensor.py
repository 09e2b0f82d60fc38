"""The tensor with the methods that it has in torch."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from primgraph.compat.promotion import promote_arguments
from primgraph.compat.torch import framework, functions
from primgraph.compat.torch.conjugates import conjugate_values, turned_node
from primgraph.compat.torch.indices import as_masks, in_two_steps
from primgraph.eager.inplace.adoption import stand_ins
from primgraph.eager.inplace.in_place import change
from primgraph.eager.inplace.views import View, show_elements, show_view
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import DTypeError, NotDifferentiable, unknown_name
from primgraph.ir.types import DType, Shape, as_dtype, complex_dtype
from primgraph.operators import astype
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import array_of
from primgraph.operators.variable import Variable as _Variable

# Functions whose first argument is no tensor that they are about; all others are methods, too.
_NO_METHODS = (
    "cat",
    "complex",
    "concat",
    "concatenate",
    "einsum",
    "imag",
    "is_tensor",
    "polar",
    "real",
    "stack",
    "tensordot",
    "view_as_complex",
    "view_as_real",
    "where",
)


class Sizes(tuple[int, ...]):
    """A shape."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements of an array of this shape."""
        return int(np.prod(self, dtype=np.int64))

    def __add__(self, other: Any) -> Sizes:
        return Sizes((*self, *other))

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"


class _Count(int):
    """The number of elements, which gives the shape, or an extent, where it is called."""

    _shape: Shape

    def __new__(cls, count: int, shape: Shape) -> _Count:
        made = super().__new__(cls, count)
        made._shape = shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        return Sizes(self._shape) if dim is None else self._shape[dim]


class Manners(Handle):
    """Torch's methods and their arguments, for whatever has elements, here or in a program."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_name(self._called, name, dir(type(self)))

    @property
    def shape(self) -> Sizes:
        """Extent along each axis."""
        return Sizes(self.type.shape)

    @property
    def size(self) -> _Count:
        """`x.size()` is the shape, and `x.size(dim)` one extent."""
        return _Count(self.type.size, self.type.shape)

    @property
    def device(self) -> framework.device:
        """The processor."""
        return framework.device()

    @property
    def mT(self) -> Self:
        """The last two axes exchanged."""
        found: Self = functions.transpose(self, -1, -2)
        return found

    def dim(self) -> builtins.int:
        """Number of axes."""
        return len(self.type.shape)

    ndimension = dim

    def nelement(self) -> builtins.int:
        """Number of elements."""
        return self.type.size

    @property
    def mH(self) -> Self:
        """The last two axes exchanged, and complex numbers conjugated."""
        found: Self = functions.conj(self.mT)
        return found

    def is_floating_point(self) -> builtins.bool:
        """Whether the elements are floats."""
        return self.dtype.kind == "f"

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the dtypes to which torch promotes them; None for the same."""
        return promote_arguments(function, args, framework.get_default_dtype(), is_ranked=True)

    def __getitem__(self, index: Any) -> Self:
        known = as_masks(index)
        steps = in_two_steps(known)
        if steps is None:
            return super().__getitem__(known)
        first, second = steps
        return super().__getitem__(first)[second]

    # Conversions.

    def _astype(self, dtype: DType) -> Self:
        found: Self = astype(self, dtype)  # type: ignore[assignment]
        return found

    def to(
        self, *targets: Any, dtype: Any = None, device: Any = None, copy: builtins.bool = False
    ) -> Self:
        """In another dtype, given as such or by a tensor of it; a device is the processor."""
        for target in targets:
            if isinstance(target, _Tensor):
                dtype = target.dtype
            elif isinstance(target, np.dtype):
                dtype = target
            else:
                framework.checked_device(target)
        framework.checked_device(device)
        return self if dtype is None else self._astype(as_dtype(dtype))

    def type_as(self, other: _Tensor) -> Self:
        """In the dtype of another."""
        return self._astype(other.dtype)

    def float(self) -> Self:
        """In float32."""
        return self._astype(framework.float32)

    def double(self) -> Self:
        """In float64."""
        return self._astype(framework.float64)

    def half(self) -> Self:
        """In float16."""
        return self._astype(framework.float16)

    def int(self) -> Self:
        """In int32."""
        return self._astype(framework.int32)

    def long(self) -> Self:
        """In int64."""
        return self._astype(framework.int64)

    def bool(self) -> Self:
        """Whether elements differ from zero."""
        return self._astype(framework.bool)

    def cpu(self) -> Self:
        """Itself, as there is no other place."""
        return self

    def contiguous(self) -> Self:
        """Return itself, or a copy of a view whose elements lie in another order."""
        tensor: Any = self
        alias = getattr(tensor, "_alias", None)
        return tensor.clone() if isinstance(alias, View) and not alias.is_contiguous else self


for _name in functions.__all__:
    if _name not in _NO_METHODS:
        setattr(Manners, _name, getattr(functions, _name))


class Variable(Manners, _Variable):
    """`pg.Variable` with torch's methods: what stands for tensors in functions that are traced."""

    __slots__ = ()


class Tensor(Manners, _Tensor):
    """`pg.Tensor` with torch's methods and their arguments, and shown as torch shows it.

    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    shares_detached: ClassVar[bool] = True
    _library: ClassVar[str] = "torch"
    # Whether the default dtype is shown, too.
    _shows_dtype: ClassVar[bool] = False

    def __init__(self, data: Any = (), *sizes: builtins.int) -> None:
        """As in torch: extents give zeros, and other data is in the default dtype."""
        if isinstance(data, int):
            data = np.zeros((data, *sizes))
        super().__init__(make_leaf(data, framework.get_default_dtype(), False))

    def __setitem__(self, index: Any, value: Any) -> None:
        known = as_masks(index)
        steps = in_two_steps(known)
        if steps is None:
            super().__setitem__(known, value)
        else:
            first, second = steps
            self[first][second] = value

    def numpy(self) -> npt.NDArray[Any]:
        """Return the elements as an array that cannot be written to.

        In torch the two share memory: a write to the array, which would have to change the tensor,
        is an error. `x.numpy().copy()` is an array of the caller's own.
        """
        array = self._array().view()
        array.flags.writeable = False
        return array

    def backward(
        self,
        gradient: Any = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: _Tensor | Sequence[_Tensor] | None = None,
    ) -> None:
        """Add the gradients of this tensor, times `gradient`, to `.grad` of what it depends on.

        Those by complex tensors are `df/dx + i df/dy`, as in torch.
        """
        super().backward(conjugate_values(gradient), retain_graph, create_graph, inputs)

    def received(self, gradient: Node) -> Node:
        """The gradient by this tensor, as tensors of its family have it."""
        return turned_node(gradient, self.family)

    def hooked(self, gradient: Node) -> Node:
        """Apply the hooks to a gradient in torch's conjugate convention."""
        found = super().hooked(turned_node(gradient, self.family))
        return turned_node(found, self.family)

    @property
    def data(self) -> _Tensor:
        """The same elements, shared, without what they were computed from.

        What is changed in place there is changed here. Setting it shares other elements.
        """
        return self.detach()

    @data.setter
    def data(self, value: _Tensor) -> None:
        show_elements(self, value)

    # In place: the tensor, and all that shares its elements, shows another value from now on.

    def add_(self, other: Any, *, alpha: Any = 1) -> Self:
        """`x += alpha * other`."""
        return self._change_in_place(functions.add(self, other, alpha=alpha))

    def sub_(self, other: Any, *, alpha: Any = 1) -> Self:
        """`x -= alpha * other`."""
        return self._change_in_place(functions.sub(self, other, alpha=alpha))

    def clamp_(self, min: Any = None, max: Any = None) -> Self:
        """Limit the elements to an interval."""
        return self._change_in_place(functions.clamp(self, min, max))

    def neg_(self) -> Self:
        """Change all signs."""
        return self._change_in_place(-self)

    def zeros_(self) -> Self:
        """Zeros from now on, as OneFlow calls it."""
        self.zero_()
        return self

    def resize_(self, *sizes: Any, size: Any = None) -> Self:
        """The same elements in another shape from now on.

        Derivatives go on through it, at any order. Raises `ShapeError` for another number of
        elements.
        """
        return self._reshape_in_place(functions.reshape(self, *sizes, shape=size))

    def squeeze_(self, dim: Any = None) -> Self:
        """Without axes of extent one from now on."""
        return self._reshape_in_place(functions.squeeze(self, dim))

    def unsqueeze_(self, dim: Any) -> Self:
        """With a new axis of extent one from now on."""
        return self._reshape_in_place(functions.unsqueeze(self, dim))

    def t_(self) -> Self:
        """A matrix, transposed from now on."""
        return self._reshape_in_place(functions.t(self))

    def _change_in_place(self, value: Any) -> Self:
        change(self, value)
        return self

    def _reshape_in_place(self, value: _Tensor) -> Self:
        if self.requires_grad and self.is_leaf:
            raise NotDifferentiable(
                "a leaf Variable that requires grad is being used in an in-place operation.",
                hint="give what depends on it a name of its own: y = x.reshape(...)",
            )
        show_view(self, value)
        return self

    def __repr__(self) -> str:
        text = np.array2string(self._array(), precision=4, separator=", ", prefix="tensor(")
        known = self.dtype in (framework.get_default_dtype(), framework.int64, framework.bool)
        is_shown = self._shows_dtype or not known
        dtype = f", dtype={self._library}.{self.dtype}" if is_shown else ""
        leaf = ", requires_grad=True" if self.requires_grad else ""
        return f"tensor({text}{dtype}{leaf})"


stand_ins[Tensor] = Variable


class Parameter(Tensor):
    """A tensor that is trained: it requires a gradient."""

    __slots__ = ()
    family = Tensor

    def __init__(self, data: Any = (), requires_grad: builtins.bool = True) -> None:
        super().__init__(make_leaf(data, None, requires_grad))

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def make_leaf(data: Any, dtype: Any, requires_grad: builtins.bool) -> Node:
    """A leaf of the elements of `data`, copied; Python floats are of the default dtype."""
    if isinstance(data, Node):
        return data
    if isinstance(data, _Tensor):
        data = data.numpy()
    array = array_of(data, None if dtype is None else as_dtype(dtype))
    if requires_grad and array.dtype.kind not in "fc":
        raise DTypeError(
            f"only floats have derivatives, and this tensor is of {array.dtype}",
            hint="give a float dtype, or leave out requires_grad",
        )
    if dtype is None and not isinstance(data, np.ndarray | np.generic):
        if array.dtype.kind == "f":
            array = array.astype(framework.get_default_dtype())
        elif array.dtype.kind == "c":
            array = array.astype(complex_dtype(framework.get_default_dtype()))
    return array_node(np.array(array), requires_grad)
