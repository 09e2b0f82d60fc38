"""Base class of variables and tensors: the interface of an ndarray."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache, partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from primgraph.base.array_functions import public_name
from primgraph.base.providers import provider
from primgraph.errors import ArgumentError, unknown_name
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.primitive import homes
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.operators.lazy_loading import (
    all_functions,
    function_named,
    functions,
    named_function,
)
from primgraph.operators.reduce.methods import NumpyMethods
from primgraph.sparsity.pattern import is_scipy_sparse


@cache
def _takes_an_array(function: Callable[..., Any]) -> bool:
    return next(iter(inspect.signature(function).parameters)) in _ARRAYS


def _is_method(name: str) -> bool:
    """Return whether there is a public function of that name whose first argument is an array."""
    function = functions.get(name) or function_named(name)
    return function is not None and _takes_an_array(function)


def array_functions() -> list[str]:
    """Return the names of the public functions whose first argument is an array."""
    return [*filter(_is_method, all_functions())]


# Parameter names of a function's array argument.
_ARRAYS = ("x", "x1", "logits")


# Whether methods work in place as in NumPy: in code that was written for NumPy, and ignores their
# results.
are_in_place: ContextVar[bool] = ContextVar("primgraph_methods_are_in_place", default=False)
_IN_PLACE = ("partition", "sort")

# Functions of `x += y` and its like, by the name of the operator.
_IN_PLACE_OPERATORS = {
    "add": "add",
    "and": "bitwise_and",
    "floordiv": "floor_divide",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "multiply",
    "or": "bitwise_or",
    "pow": "power",
    "sub": "subtract",
    "truediv": "divide",
    "xor": "bitwise_xor",
}


def add_in_place_operators(kind: type[Any]) -> None:
    """Give a class the methods of `x += y` and its like, by its `_change_in_place(name, y)`."""
    for name, function in _IN_PLACE_OPERATORS.items():
        setattr(kind, f"__i{name}__", _in_place_operator(function))


def _in_place_operator(function: str) -> Callable[[Any, Any], Any]:
    def method(array: Any, other: Any) -> Any:
        return array._change_in_place(function, other)

    return method


# Whether `s += x` gives the name `s` to a new tensor where NumPy has a number, and not an array: in
# code that was written for NumPy.
are_numbers_fixed: ContextVar[bool] = ContextVar("primgraph_numbers_are_fixed", default=False)


def _run_in_place(array: Any, name: str, /, *args: Any, **options: Any) -> None:
    """Run an in-place method, such as `array.sort()`; NumPy's choice of algorithm is ignored."""
    known = {n: v for n, v in options.items() if n not in ("kind", "order", "stable")}
    array[...] = named_function(name)(array, *args[: 2 if name == "partition" else 1], **known)


def _is_left_to(other: Any) -> bool:
    """Return whether the class of `other` takes over operators, as it does for NumPy arrays."""
    return getattr(type(other), "__array_ufunc__", other) is None


# Functions of SciPy that return NotImplemented for objects that NumPy makes no array of.
_SPARSE_PRODUCTS = ("_matmul_dispatch", "_mul_dispatch")


def object_for_sparse(array: Any, frame: FrameType) -> npt.NDArray[Any] | None:
    """Return a 0-d array of the object if a product of `scipy.sparse` asks for an array, else None.

    The product then is left to the methods of the class of `array`.
    """
    module = frame.f_globals.get("__name__", "")
    if frame.f_code.co_name not in _SPARSE_PRODUCTS or not module.startswith("scipy.sparse."):
        return None
    found = np.empty((), object)
    found[()] = array
    return found


@checked_methods(late=True)
class Handle(NumpyMethods):
    """Array for functions of primgraph: a variable of a program, or an eager tensor.

    Operators and methods have NumPy's semantics, broadcasting and promotion included; Python
    scalars take the dtype of the array they are combined with. Functions that take an array first
    are methods, too: `x.tanh()`, `x.norm(axis=0)`, and `x.pow(2)` as torch and Paddle call it.
    Their `keepdim` is `keepdims`.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    # Name for messages, and whether it belongs to a function being traced.
    _called = "an array"
    _is_traced = False
    # Whether it has elements: a tensor.
    _has_elements = False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _IN_PLACE and are_in_place.get():
                return partial(_run_in_place, self, name)
            found = name if _is_method(name) else public_name(name)
            if _is_method(found):
                return partial(functions[found], self)
            # Special names that Python and NumPy look up are not misspellings.
            special = name.startswith("__")
            public = [n for n in dir(type(self)) if not n.startswith("_")]
            known = [] if special else [*public, *array_functions()]
            hint = "" if special else provider("advice").hint_method(name, self._is_traced)
            raise unknown_name(self._called, name, known, hint)

    def _dispatch(self, name: str, *args: Any, **kwargs: Any) -> Self:
        """Call the public function of that name."""
        found: Self = functions[name](*args, **kwargs)
        return found

    @property
    @abstractmethod
    def type(self) -> TensorType:
        """Shape and dtype."""

    @property
    def shape(self) -> Shape:
        """Shape."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """NumPy dtype of the elements."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @abstractmethod
    def detach(self) -> Self:
        """Return the same numbers as a constant for differentiation; see `pg.stop_gradient`."""

    @property
    def real(self) -> Self:
        """Real parts of complex numbers; other numbers as they are."""
        found: Self = named_function("real")(self)
        return found

    @real.setter
    def real(self, value: Any) -> None:
        cast("Any", self.real)[...] = value

    @property
    def imag(self) -> Self:
        """Imaginary parts of complex numbers, zeros for others."""
        found: Self = named_function("imag")(self)
        return found

    @imag.setter
    def imag(self, value: Any) -> None:
        cast("Any", self.imag)[...] = value

    @property
    def T(self) -> Self:
        """Array with its axes in reverse order."""
        return self._dispatch("transpose", self)

    @property
    def mT(self) -> Self:
        """Transposes of a stack of matrices."""
        found: Self = named_function("matrix_transpose")(self)
        return found

    @property
    def device(self) -> Any:
        """Device of the elements: "cpu"."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Self:
        """Return the array itself. Raises `ArgumentError` for another device."""
        if device != self.device:
            raise ArgumentError(f"there is no device {device!r:.60}: all arrays are on 'cpu'")
        return self

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace of the array API standard, see `primgraph.array_api`.

        Raises `ArgumentError` for a newer or invalid version.
        """
        found = provider("array API")
        if api_version not in (None, "2021.12", "2022.12", "2023.12", found.__array_api_version__):
            raise ArgumentError(
                f"there is no version {api_version!r:.60} of the array API standard here",
                hint=f"primgraph.array_api is of {found.__array_api_version__}",
            )
        return found

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError(
                f"{self._called} of shape () has no length, and cannot be iterated over",
                hint="it is a single number: use it itself",
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    @abstractmethod
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the elements for NumPy, if there are any."""

    # Let `pd.Series * variable` dispatch here, as `array * variable` does.
    __pandas_priority__ = 10_000

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Dispatch `array - x`, `np.sin(x)` and `np.add.reduce(x)` to primgraph."""
        mine = _NAME_OF_UFUNC.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not kwargs and (mine in functions or mine in homes):
            return functions[mine](*inputs)
        return provider("calls of ufuncs").call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Dispatch `np.sum(x)` and similar calls to primgraph."""
        return provider("calls of NumPy").call_function(func, args, kwargs, self._instead)

    def _instead(self, name: str, called: str) -> str:
        """Return the hint for a NumPy function that is missing here, if any."""
        return ""

    def __add__(self, other: ArrayLike) -> Self:
        return functions["add"](self, other)  # type: ignore[no-any-return]

    def __radd__(self, other: ArrayLike) -> Self:
        return functions["add"](other, self)  # type: ignore[no-any-return]

    def __sub__(self, other: ArrayLike) -> Self:
        return functions["subtract"](self, other)  # type: ignore[no-any-return]

    def __rsub__(self, other: ArrayLike) -> Self:
        return functions["subtract"](other, self)  # type: ignore[no-any-return]

    def __mul__(self, other: ArrayLike) -> Self:
        if type(other) is not type(self) and _is_left_to(other):
            return NotImplemented
        return functions["multiply"](self, other)  # type: ignore[no-any-return]

    def __rmul__(self, other: ArrayLike) -> Self:
        return functions["multiply"](other, self)  # type: ignore[no-any-return]

    def __truediv__(self, other: ArrayLike) -> Self:
        return functions["divide"](self, other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: ArrayLike) -> Self:
        return functions["divide"](other, self)  # type: ignore[no-any-return]

    def __floordiv__(self, other: ArrayLike) -> Self:
        return self._dispatch("floor_divide", self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Self:
        return self._dispatch("floor_divide", other, self)

    def __mod__(self, other: ArrayLike) -> Self:
        return self._dispatch("remainder", self, other)

    def __rmod__(self, other: ArrayLike) -> Self:
        return self._dispatch("remainder", other, self)

    def __pow__(self, other: ArrayLike) -> Self:
        return functions["power"](self, other)  # type: ignore[no-any-return]

    def __rpow__(self, other: ArrayLike) -> Self:
        return functions["power"](other, self)  # type: ignore[no-any-return]

    def __matmul__(self, other: ArrayLike) -> Self:
        if type(other) is not type(self):
            if _is_left_to(other):
                return NotImplemented
            if is_scipy_sparse(other):
                return provider("sparse products").multiply_right(self, other)  # type: ignore[no-any-return]
        return functions["matmul"](self, other)  # type: ignore[no-any-return]

    def __rmatmul__(self, other: ArrayLike) -> Self:
        if is_scipy_sparse(other):
            return provider("sparse products").multiply_left(other, self)  # type: ignore[no-any-return]
        return functions["matmul"](other, self)  # type: ignore[no-any-return]

    def __and__(self, other: ArrayLike) -> Self:
        return self._dispatch("bitwise_and", self, other)

    def __or__(self, other: ArrayLike) -> Self:
        return self._dispatch("bitwise_or", self, other)

    def __xor__(self, other: ArrayLike) -> Self:
        return self._dispatch("bitwise_xor", self, other)

    def __divmod__(self, other: ArrayLike) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: ArrayLike) -> tuple[Self, Self]:
        return self._dispatch("floor_divide", other, self), self._dispatch("remainder", other, self)

    def __round__(self, decimals: int = 0) -> Self:
        return self._dispatch("round", self, decimals)

    def __floor__(self) -> Self:
        return self._dispatch("floor", self)

    def __ceil__(self) -> Self:
        return self._dispatch("ceil", self)

    def __lshift__(self, other: ArrayLike) -> Self:
        return self._dispatch("left_shift", self, other)

    def __rlshift__(self, other: ArrayLike) -> Self:
        return self._dispatch("left_shift", other, self)

    def __rshift__(self, other: ArrayLike) -> Self:
        return self._dispatch("right_shift", self, other)

    def __rrshift__(self, other: ArrayLike) -> Self:
        return self._dispatch("right_shift", other, self)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __invert__(self) -> Self:
        return self._dispatch("invert", self)

    def __neg__(self) -> Self:
        return functions["negative"](self)  # type: ignore[no-any-return]

    def __pos__(self) -> Self:
        return self._dispatch("assign", self)

    def __abs__(self) -> Self:
        return self._dispatch("abs", self)

    def __lt__(self, other: ArrayLike) -> Self:
        return self._dispatch("less", self, other)

    def __le__(self, other: ArrayLike) -> Self:
        return self._dispatch("less_equal", self, other)

    def __gt__(self, other: ArrayLike) -> Self:
        return self._dispatch("greater", self, other)

    def __ge__(self, other: ArrayLike) -> Self:
        return self._dispatch("greater_equal", self, other)

    def __eq__(self, other: ArrayLike) -> Self:  # type: ignore[override]
        _require_compared("==", other)
        return self._dispatch("equal", self, other)

    def __ne__(self, other: ArrayLike) -> Self:  # type: ignore[override]
        _require_compared("!=", other)
        return self._dispatch("not_equal", self, other)

    def __getitem__(self, index: Any) -> Self:
        return self._dispatch("getitem", self, index)

    def reshape(self, *shape: Any, order: str = "C") -> Self:
        """Return the elements in another shape, given as integers or as one tuple."""
        return self._dispatch("reshape", self, shape[0] if len(shape) == 1 else shape, order)

    def transpose(self, *axes: Any) -> Self:
        """Permute axes, by default reverse them; see `pg.transpose`."""
        order = axes[0] if len(axes) == 1 else axes or None
        return self._dispatch("transpose", self, order)

    def astype(self, dtype: Any, *, copy: bool = True) -> Self:
        """Convert to another dtype; see `pg.astype`."""
        return self._dispatch("astype", self, dtype, copy=copy)

    def squeeze(self, axis: Axes = None) -> Self:
        """Remove axes of size one; see `pg.squeeze`."""
        return self._dispatch("squeeze", self, axis)

    def flatten(self, order: str = "C") -> Self:
        """Return all elements along one axis; see `pg.flatten`."""
        return self._dispatch("flatten", self, order)

    def ravel(self, order: str = "C") -> Self:
        """Return all elements along one axis; see `pg.ravel`."""
        return self._dispatch("ravel", self, order)

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """Exchange two axes; see `pg.swapaxes`."""
        return self._dispatch("swapaxes", self, axis1, axis2)

    def round(self, decimals: int = 0) -> Self:
        """Round elements, halves to even; see `pg.round`."""
        return self._dispatch("round", self, decimals)

    def dot(self, other: ArrayLike) -> Self:
        """Return the product of vectors or matrices; see `pg.dot`."""
        return self._dispatch("dot", self, other)


def _require_compared(sign: str, other: Any) -> None:
    if other is None:
        raise ArgumentError(
            f"x {sign} None compares the elements of an array, and None is no number",
            hint=f"write x is {'not ' if sign == '!=' else ''}None",
        )


# NumPy ufuncs whose names differ from those of primgraph's functions.
_NAME_OF_UFUNC = {
    "absolute": "abs",
    "true_divide": "divide",
    "expit": "sigmoid",
}


ArrayLike: TypeAlias = Handle | npt.ArrayLike
Axes: TypeAlias = int | Sequence[int] | None
