"""The handle that users compute with: a value of a program, with an ndarray's manners."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy.typing as npt

from primgraph.errors import ArgumentError, BuildError, unknown_name
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive, Recorder, active_recorder
from primgraph.ir.sheet import facts
from primgraph.ir.signature import checked_methods
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.meanings import method_instead, renamed, written_instead
from primgraph.operators import advice

# The public functions by name, filled where they are defined; methods of handles call them.
functions: dict[str, Callable[..., Any]] = {}


def _call(name: str, *args: Any, **kwargs: Any) -> Variable:
    result: Variable = functions[name](*args, **kwargs)
    return result


def _is_method(name: str) -> bool:
    """Whether there is a public function of that name whose first argument is an array."""
    function = functions.get(name)
    return function is not None and next(iter(inspect.signature(function).parameters)) in _ARRAYS


def _array_functions() -> list[str]:
    return [*filter(_is_method, functions)]


# What parameters are called that are the array which a function is about.
_ARRAYS = ("x", "x1", "logits")


def checked_name(name: Any) -> str:
    """`name`, if it may name an input or a variable.

    Raises `ArgumentError` for anything but a string, `BuildError` for an empty or very long one
    and for one with control, format or surrogate characters, which could not be seen.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"a name is a string, not {type(name).__name__} {name!r:.80}")
    if not 0 < len(name) <= 200:
        raise BuildError(f"a name has 1 to 200 characters, {len(name)} given")
    if any(unicodedata.category(c)[0] == "C" for c in name):
        raise BuildError(f"the name {name!r:.220} has characters that cannot be seen")
    return name


@final
@checked_methods("__init__", late=True)
class Variable:
    """A handle on one value of a program. Computing with it adds to the program.

    Operators and methods mean what they mean on a NumPy array, broadcasting and promotion
    included; Python scalars take the dtype of the array they meet. Nothing is computed before
    the program runs, so a handle has no elements to look at. Functions that take an array first
    are methods too: `x.tanh()`, `x.norm(axis=0)`, and `x.pow(2)` as torch and Paddle call it.
    Their `keepdim` is `keepdims`.
    """

    __slots__ = ("recorder", "used", "value")
    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self.recorder = recorder
        self.value = value
        # Whether something was computed with this handle.
        self.used = False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            found = name if _is_method(name) else renamed(name)
            if _is_method(found):
                return partial(functions[found], self)
            known = [*dir(Variable), *_array_functions()]
            raise unknown_name("a variable", name, known, method_instead(name))

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def shape(self) -> Shape:
        """Extent along each axis."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """The NumPy dtype of the elements."""
        return self.value.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.type.size

    @property
    def name(self) -> str:
        """The name it was given, or else one of what computes it, to fetch the variable by.

        It may be set once.
        """
        return self.recorder.name_of(self.value)

    @name.setter
    def name(self, name: str) -> None:
        self.recorder.rename(self.value, checked_name(name))

    @property
    def stop_gradient(self) -> bool:
        """Whether derivatives treat this variable as a constant; False until it is set.

        It counts when derivatives are taken, for all that is computed from the variable, before
        it was set too. Inputs and parameters are held constant wherever they are used; of a
        computed variable only this one is, not another one that happens to compute the same.
        Where such a one is there already, and something was computed with both, what came of
        which is not known: setting it is a `BuildError` then.
        """
        return self.value in self.recorder.stopped

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        if not isinstance(stop, bool):
            raise ArgumentError(f"stop_gradient is True or False, not {stop!r:.60}")
        self.value = self.recorder.hold(self.value, stop, self.used)

    def detach(self) -> Variable:
        """The same numbers, as a constant for differentiation; see `pg.stop_gradient`."""
        return _call("stop_gradient", self)

    @property
    def T(self) -> Variable:
        """The array with its axes in reverse order."""
        return _call("transpose", self)

    def __repr__(self) -> str:
        name = f" {self.value.hint!r}" if self.value.hint else ""
        return f"<Variable{name} {self.type}>"

    def _repr_html_(self) -> str:
        return facts("Variable", self.recorder.described(self.value)).html()

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("a 0-d variable has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        raise ArgumentError(
            "what a variable contains is not known while the program is built",
            hint="pg.any(x == item) is whether an element equals it",
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ArgumentError(
            "a variable does not change: nothing can be assigned to its elements",
            hint=advice.on_setting(masked=getattr(index, "dtype", None) in (bool, "bool")),
        )

    def __bool__(self) -> bool:
        raise ArgumentError(
            "the truth of a variable is not known while the program is built",
            hint=advice.on_truth(),
        )

    def __float__(self) -> float:
        raise ArgumentError(
            "a variable has no number before the program runs",
            hint=advice.on_number(_array_functions()),
        )

    __int__ = __float__
    __index__ = __float__
    __complex__ = __float__

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise ArgumentError(
            f"a variable has no number before the program runs that {spec!r:.60} could format",
            hint="run the program and format what it returns",
        )

    def __reduce__(self) -> str:
        raise BuildError(
            "a variable cannot be pickled: it belongs to a program",
            hint="pg.save(program, path) writes the program with its parameters; arrays that a "
            "run returns, graphs and kernels can be pickled",
        )

    def __copy__(self) -> Variable:
        return Variable(self.recorder, self.value)

    def __deepcopy__(self, memo: Any) -> Variable:
        """Another handle on the same value, which never changes."""
        return Variable(self.recorder, self.value)

    # Let `pd.Series * variable` build the program, as `array * variable` does.
    __pandas_priority__ = 10_000

    def __array__(self, *args: Any, **kwargs: Any) -> npt.NDArray[Any]:
        raise ArgumentError(
            "a variable has no elements before the program runs, so NumPy cannot read it",
            hint=advice.on_reading(functions, _array_functions()),
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let `array - variable` and `np.sin(variable)` build the program."""
        name = _NAME_OF_UFUNC.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or kwargs or name not in functions:
            raise ArgumentError(
                f"np.{ufunc.__name__} cannot be built into a program this way",
                hint=advice.on_ufunc(functions, ufunc.__name__, name, method, kwargs),
            )
        return functions[name](*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let `np.sum(variable)` and the like build the program."""
        # Functions of numpy.linalg and others mean something else by the same names.
        called = f"{func.__module__}.{func.__name__}"
        if called not in _SAME and (func.__module__ != "numpy" or func.__name__ not in functions):
            raise ArgumentError(
                f"{called} has no counterpart here", hint=written_instead(func.__name__)
            )
        return functions[func.__name__](*args, **kwargs)

    def __add__(self, other: ArrayLike) -> Variable:
        return _call("add", self, other)

    def __radd__(self, other: ArrayLike) -> Variable:
        return _call("add", other, self)

    def __sub__(self, other: ArrayLike) -> Variable:
        return _call("subtract", self, other)

    def __rsub__(self, other: ArrayLike) -> Variable:
        return _call("subtract", other, self)

    def __mul__(self, other: ArrayLike) -> Variable:
        return _call("multiply", self, other)

    def __rmul__(self, other: ArrayLike) -> Variable:
        return _call("multiply", other, self)

    def __truediv__(self, other: ArrayLike) -> Variable:
        return _call("divide", self, other)

    def __rtruediv__(self, other: ArrayLike) -> Variable:
        return _call("divide", other, self)

    def __floordiv__(self, other: ArrayLike) -> Variable:
        return _call("floor_divide", self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Variable:
        return _call("floor_divide", other, self)

    def __mod__(self, other: ArrayLike) -> Variable:
        return _call("remainder", self, other)

    def __rmod__(self, other: ArrayLike) -> Variable:
        return _call("remainder", other, self)

    def __pow__(self, other: ArrayLike) -> Variable:
        return _call("power", self, other)

    def __rpow__(self, other: ArrayLike) -> Variable:
        return _call("power", other, self)

    def __matmul__(self, other: ArrayLike) -> Variable:
        return _call("matmul", self, other)

    def __rmatmul__(self, other: ArrayLike) -> Variable:
        return _call("matmul", other, self)

    def __and__(self, other: ArrayLike) -> Variable:
        return _call("bitwise_and", self, other)

    def __or__(self, other: ArrayLike) -> Variable:
        return _call("bitwise_or", self, other)

    def __xor__(self, other: ArrayLike) -> Variable:
        return _call("bitwise_xor", self, other)

    def __divmod__(self, other: ArrayLike) -> tuple[Variable, Variable]:
        return self // other, self % other

    def __rdivmod__(self, other: ArrayLike) -> tuple[Variable, Variable]:
        return _call("floor_divide", other, self), _call("remainder", other, self)

    def __round__(self, decimals: int = 0) -> Variable:
        return _call("round", self, decimals)

    def __floor__(self) -> Variable:
        return _call("floor", self)

    def __ceil__(self) -> Variable:
        return _call("ceil", self)

    def __lshift__(self, other: ArrayLike) -> Variable:
        return _call("left_shift", self, other)

    def __rlshift__(self, other: ArrayLike) -> Variable:
        return _call("left_shift", other, self)

    def __rshift__(self, other: ArrayLike) -> Variable:
        return _call("right_shift", self, other)

    def __rrshift__(self, other: ArrayLike) -> Variable:
        return _call("right_shift", other, self)

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def __invert__(self) -> Variable:
        return _call("invert", self)

    def __neg__(self) -> Variable:
        return _call("negative", self)

    def __pos__(self) -> Variable:
        return _call("assign", self)

    def __abs__(self) -> Variable:
        return _call("abs", self)

    def __lt__(self, other: ArrayLike) -> Variable:
        return _call("less", self, other)

    def __le__(self, other: ArrayLike) -> Variable:
        return _call("less_equal", self, other)

    def __gt__(self, other: ArrayLike) -> Variable:
        return _call("greater", self, other)

    def __ge__(self, other: ArrayLike) -> Variable:
        return _call("greater_equal", self, other)

    def __eq__(self, other: ArrayLike) -> Variable:  # type: ignore[override]
        return _call("equal", self, other)

    def __ne__(self, other: ArrayLike) -> Variable:  # type: ignore[override]
        return _call("not_equal", self, other)

    def __getitem__(self, index: Any) -> Variable:
        return _call("getitem", self, index)

    def sum(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Sum over `axis`; see `pg.sum`."""
        return _call("sum", self, axis, keepdims or keepdim)

    def mean(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Mean over `axis`; see `pg.mean`."""
        return _call("mean", self, axis, keepdims or keepdim)

    def max(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Maximum over `axis`; see `pg.max`."""
        return _call("max", self, axis, keepdims or keepdim)

    def min(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Minimum over `axis`; see `pg.min`."""
        return _call("min", self, axis, keepdims or keepdim)

    def prod(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Product over `axis`; see `pg.prod`."""
        return _call("prod", self, axis, keepdims or keepdim)

    def var(
        self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False, **options: float
    ) -> Variable:
        """Variance over `axis`; see `pg.var`."""
        return _call("var", self, axis, keepdims or keepdim, **options)

    def std(
        self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False, **options: float
    ) -> Variable:
        """Standard deviation over `axis`; see `pg.std`."""
        return _call("std", self, axis, keepdims or keepdim, **options)

    def any(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Whether an element over `axis` differs from zero; see `pg.any`."""
        return _call("any", self, axis, keepdims or keepdim)

    def all(self, axis: Axes = None, keepdims: bool = False, *, keepdim: bool = False) -> Variable:
        """Whether all elements over `axis` differ from zero; see `pg.all`."""
        return _call("all", self, axis, keepdims or keepdim)

    def argmax(
        self, axis: int | None = None, keepdims: bool = False, *, keepdim: bool = False
    ) -> Variable:
        """Index of the first maximum; see `pg.argmax`."""
        return _call("argmax", self, axis, keepdims or keepdim)

    def argmin(
        self, axis: int | None = None, keepdims: bool = False, *, keepdim: bool = False
    ) -> Variable:
        """Index of the first minimum; see `pg.argmin`."""
        return _call("argmin", self, axis, keepdims or keepdim)

    def cumsum(self, axis: int | None = None) -> Variable:
        """Running sum along `axis`; see `pg.cumsum`."""
        return _call("cumsum", self, axis)

    def take(self, indices: ArrayLike, axis: int | None = None) -> Variable:
        """Elements at `indices`; see `pg.take`."""
        return _call("take", self, indices, axis)

    def reshape(self, *shape: Any) -> Variable:
        """The same elements in another shape, given as integers or as one tuple."""
        return _call("reshape", self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Variable:
        """Axes permuted, by default reversed; see `pg.transpose`."""
        order = axes[0] if len(axes) == 1 else axes or None
        return _call("transpose", self, order)

    def astype(self, dtype: Any, *, copy: bool = True) -> Variable:
        """The same numbers in another dtype; see `pg.astype`."""
        return _call("astype", self, dtype, copy=copy)

    def squeeze(self, axis: Axes = None) -> Variable:
        """Without axes of extent one; see `pg.squeeze`."""
        return _call("squeeze", self, axis)

    def flatten(self) -> Variable:
        """All elements along one axis."""
        return _call("flatten", self)

    def ravel(self) -> Variable:
        """All elements along one axis."""
        return _call("ravel", self)

    def swapaxes(self, axis1: int, axis2: int) -> Variable:
        """Two axes exchanged; see `pg.swapaxes`."""
        return _call("swapaxes", self, axis1, axis2)

    def round(self, decimals: int = 0) -> Variable:
        """Elements rounded, halves to even; see `pg.round`."""
        return _call("round", self, decimals)

    def dot(self, other: ArrayLike) -> Variable:
        """Product of vectors or matrices; see `pg.dot`."""
        return _call("dot", self, other)

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Variable:
        """Elements limited to an interval; see `pg.clip`."""
        return _call("clip", self, min, max)


# Ufuncs whose own name is not the one that primgraph's function has.
_NAME_OF_UFUNC = {
    "absolute": "abs",
    "true_divide": "divide",
    "rint": "round",
    "expit": "sigmoid",
}

# Functions outside of `numpy` itself that mean what ours of the same name do.
_SAME = ("numpy.linalg.norm",)

ArrayLike: TypeAlias = Variable | npt.ArrayLike
Axes: TypeAlias = int | Sequence[int] | None


def handles(arguments: Iterable[Any]) -> list[Variable]:
    """The handles among `arguments`, those in lists and tuples included."""
    found: list[Variable] = []
    for argument in arguments:
        if isinstance(argument, Variable):
            found.append(argument)
        elif isinstance(argument, list | tuple):
            found += handles(argument)
    return found


def emit(op: Primitive[Value], *operands: Variable, **params: Any) -> Variable:
    """Apply a primitive to handles."""
    recorder = operands[0].recorder if operands else active_recorder()
    return Variable(recorder, recorder.emit(op, [v.value for v in operands], params)[0])
