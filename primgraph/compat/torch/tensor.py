"""The tensor with the methods that it has in torch."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from primgraph.base.user_lines import is_own
from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.random_methods import RandomMethods
from primgraph.compat.torch import framework, functions
from primgraph.compat.torch.core.anomaly import leaves_of, require_no_nan
from primgraph.compat.torch.core.conjugates import conjugate_values, turned_node
from primgraph.compat.torch.core.gradient_nodes import Node as GradientNode
from primgraph.compat.torch.core.gradient_nodes import gradient_node
from primgraph.compat.torch.core.in_place import in_place_methods
from primgraph.compat.torch.core.indices import as_masks, checked_index, in_two_steps
from primgraph.compat.torch.core.leaves import NewTensors, make_sized_leaf
from primgraph.compat.torch.core.leaves import make_leaf as make_leaf
from primgraph.compat.torch.core.methods import Sizes, TensorMethods
from primgraph.compat.torch.core.printing import format_tensor
from primgraph.compat.torch.core.tensor_types import CallableType
from primgraph.compat.torch.core.variables import Variable
from primgraph.eager.inplace.adoption import stand_ins
from primgraph.eager.inplace.in_place import change
from primgraph.eager.inplace.views import Storage, View, part_from_storage, show_elements, show_view
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, NotDifferentiable, UnknownNameError
from primgraph.ir.types import TensorType, complex_dtype


class Tensor(TensorMethods, NewTensors, RandomMethods, _Tensor):
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
        if not isinstance(data, Node):
            data = make_sized_leaf((data, *sizes), framework.get_default_dtype())
        super().__init__(data)

    @property
    def type(self) -> TensorType:
        """Shape and dtype; `x.type()` is a name, and `x.type(dtype)` the tensor in that dtype.

        Only callers outside of this package get a type that can be called.
        """
        plain = self.last_node.type
        return plain if is_own(sys._getframe(1)) else CallableType(self, plain)

    @property
    def shape(self) -> Sizes:
        """Extent along each axis."""
        return Sizes(self.last_node.type.shape)

    @property
    def ndim(self) -> builtins.int:
        """Number of axes."""
        return len(self.last_node.type.shape)

    @property
    def dtype(self) -> Any:
        """The library's dtype of the elements."""
        return LibraryDType(self._library, self.last_node.type.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        known = checked_index(as_masks(index))
        steps = in_two_steps(known)
        if steps is None:
            super().__setitem__(known, value)
        else:
            first, second = steps
            self[first][second] = value

    def numpy(self, *, force: builtins.bool = False) -> npt.NDArray[Any]:
        """Return the elements as an array that cannot be written to.

        In torch the two share memory: a write to the array, which would have to change the tensor,
        is an error. `x.numpy().copy()` is an array of the caller's own. Raises `NotDifferentiable`
        for a tensor that requires a gradient, unless `force`.
        """
        if self.requires_grad and not force:
            raise NotDifferentiable(
                "Can't call numpy() on Tensor that requires grad.",
                hint="Use tensor.detach().numpy() instead.",
            )
        array = self._array().view()
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> npt.NDArray[Any]:
        """Return the elements for NumPy, read-only unless `copy`.

        Raises `NotDifferentiable` for a tensor that requires a gradient, as `numpy` does.
        """
        if self.requires_grad and not is_own(sys._getframe(1)):
            self.numpy()
        return super().__array__(dtype, copy)

    def __contains__(self, item: Any) -> builtins.bool:
        if not isinstance(item, _Tensor | builtins.int | builtins.float | complex | np.number):
            raise ArgumentError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(item)}."
            )
        return super().__contains__(item)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 else super().__format__(spec)

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
        leaves = leaves_of([self])
        super().backward(conjugate_values(gradient), retain_graph, create_graph, inputs)
        require_no_nan(leaf.grad for leaf in leaves)

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
        if not isinstance(value, _Tensor):
            raise ArgumentError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        show_elements(self, value)

    @property
    def grad_fn(self) -> GradientNode | None:
        """Node of the graph of derivatives that this comes from; None for leaves and constants."""
        return None if self.is_leaf else gradient_node(self.node, self)

    @property
    def _base(self) -> Any:
        """The tensor that this is a view of; None for others."""
        alias = self._alias
        return alias.storage.owner() if isinstance(alias, View) else None

    @property
    def _version(self) -> builtins.int:
        """Number of changes in place, counted from the first view or the first time it is read."""
        return storage_of(self).version

    @property
    def is_view(self) -> builtins.bool:
        """Whether it shares the elements of another tensor."""
        return isinstance(self._alias, View)

    def data_ptr(self) -> builtins.int:
        """Return a number that is equal for tensors with the same first element.

        It is no address: elements are computed when they are read.
        """
        alias = self._alias
        storage = alias.storage if isinstance(alias, View) else alias
        owner = storage.owner() if isinstance(storage, Storage) else self
        base = id(storage if owner is None else owner)
        return base + self.storage_offset() * self.itemsize

    # In place: the tensor, and all that shares its elements, shows another value from now on.

    def copy_(self, src: Any, non_blocking: builtins.bool = False) -> Self:
        """Copy `src` into this tensor, broadcast and converted."""
        return super().copy_(src)

    def fill_(self, value: Any) -> Self:
        """Set all elements to a number, or to that of a tensor without axes."""
        if not isinstance(value, _Tensor):
            return super().fill_(value)
        if value.ndim:
            raise ArgumentError(f"fill_ only supports 0-dimension value tensor, not {value.type}")
        return self.copy_(value)

    def fill_diagonal_(self, fill_value: float, wrap: builtins.bool = False) -> Self:
        """Set the elements of the diagonal to a number."""
        places = np.zeros(self.type.shape, np.bool_)
        np.fill_diagonal(places, True, wrap)
        mask = self.family(array_node(places))
        return self.change_in_place(functions.masked_fill(self, mask, fill_value))

    def set_(self, source: _Tensor) -> Self:
        """Share the elements of `source` from now on."""
        self.data = source
        return self

    def apply_(self, callable: Any) -> Self:
        """Replace each element by what a function of Python numbers returns for it."""
        found = np.array([callable(v) for v in self._array().reshape(-1).tolist()])
        array = found.reshape(self.type.shape).astype(self.type.dtype)
        return self.change_in_place(self.family(array_node(array)))

    def zeros_(self) -> Self:
        """Zeros from now on, as OneFlow calls it."""
        self.zero_()
        return self

    def resize_(self, *sizes: Any, size: Any = None) -> Self:
        """The same elements in another shape from now on.

        Derivatives go on through it, at any order. Raises `ShapeError` for another number of
        elements.
        """
        return self.reshape_in_place(functions.reshape(self, *sizes, shape=size))

    def resize_from(self, found: _Tensor) -> None:
        """Show a result of another shape from now on, as `out=` does."""
        part_from_storage(self)
        self.show(found.node)

    def change_in_place(self, value: Any) -> Self:
        """Show a value of the same shape from now on, and all that shares the elements with it."""
        change(self, value)
        return self

    def reshape_in_place(self, value: _Tensor) -> Self:
        """Show a view of itself from now on."""
        if self.requires_grad and self.is_leaf:
            raise NotDifferentiable(
                "a leaf Variable that requires grad is being used in an in-place operation.",
                hint="give what depends on it a name of its own: y = x.reshape(...)",
            )
        show_view(self, value)
        return self

    def __repr__(self) -> str:
        array = self._array()
        default = framework.dtype_or_default(None)
        known = (default, complex_dtype(default), np.dtype("int64"), np.dtype("bool"))
        notes = []
        if not array.size and array.ndim != 1:
            notes.append(f"size={tuple(array.shape)}")
        is_known = array.dtype == default if not array.size else array.dtype in known
        if self._shows_dtype or not is_known:
            notes.append(f"dtype={self.dtype}")
        if not self.is_leaf:
            notes.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            notes.append("requires_grad=True")
        return format_tensor(array, notes)


def storage_of(tensor: Any) -> Storage:
    """Return the storage of a tensor, made now if it shares its elements with no other."""
    if tensor._alias is None:
        tensor._alias = Storage(tensor)
        tensor._alias.node = tensor.node
    alias = tensor._alias
    storage: Storage = alias.storage if isinstance(alias, View) else alias
    return storage


for _name, _method in in_place_methods().items():
    setattr(Tensor, _name, _method)
    setattr(Variable, _name, _method)
for _name in vars(NewTensors):
    if _name.startswith(("new", "_new")):
        setattr(Variable, _name, getattr(NewTensors, _name))
Variable.family = Tensor

stand_ins[Tensor] = Variable


class Parameter(Tensor):
    """A tensor that is trained: it requires a gradient, and shares the elements of `data`.

    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    family = Tensor

    def __init__(self, data: Any = (), requires_grad: builtins.bool = True) -> None:
        if not isinstance(data, Node | _Tensor | tuple):
            raise UnknownNameError(
                f"a Parameter is made of a tensor, not of {data!r:.60}",
                hint="torch.tensor(...) makes a tensor of numbers",
            )
        super().__init__(make_leaf(data, None, requires_grad))
        if not isinstance(data, Tensor):
            return
        # Writes to the base of a storage are the faster ones, and parameters are written to.
        if data._alias is None:
            show_elements(data, self)
        else:
            show_elements(self, data)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
