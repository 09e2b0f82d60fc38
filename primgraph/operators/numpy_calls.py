"""NumPy's functions on handles: how a call of one becomes a call of ours.

The table of names is `numpy_names`; what takes the same arguments in other places or by other
names is called through `Counterpart`, and what means them otherwise has a function here. All of it
is loaded when NumPy first asks.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import accumulate as running
from operator import attrgetter
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, near_matches
from primgraph.meanings import written_instead
from primgraph.operators.handle import Handle
from primgraph.operators.implementing import implemented
from primgraph.operators.late import function_named, named_function
from primgraph.operators.numpy_names import NOT_BECAUSE, SPECIAL, table
from primgraph.operators.variable import handles

# What the options of NumPy's are that say how something is computed or stored, and not what.
_IGNORED = frozenset(
    ("casting", "copy", "device", "like", "optimize", "order", "signature", "subok")
)
# NumPy functions whose `where` leaves elements out, with what stands for these.
_NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True, "nansum": 0}
_EXTREME = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}


def called(name: str, *args: Any, **kwargs: Any) -> Any:
    """What the public function of that name gives."""
    return named_function(name)(*args, **kwargs)


def _may_change(array: Any) -> bool:
    """Whether an array of a program is one that may be assigned to."""
    return isinstance(array, Handle) and hasattr(type(array), "change_to")


def _refuse_out(name: str, mine: str) -> None:
    raise ArgumentError(
        f"np.{name} cannot write to a NumPy array what is not computed yet",
        hint=f"a NumPy array takes no variable in place: a = pg.{mine}(a, x) is a new variable",
    )


@final
class Counterpart:
    """A function of NumPy's that is called as its signature says, and what it is called here."""

    __slots__ = ("_places", "_taken", "mine", "name", "signature")

    def __init__(self, name: str, original: Callable[..., Any], mine: str) -> None:
        self.name, self.mine = name, mine
        own = inspect.signature(function_named(mine) or original)
        self._taken = own.parameters
        try:
            self.signature: inspect.Signature | None = inspect.signature(original)
        except ValueError:
            self.signature = None
        self._places = {} if self.signature is None else self._paired(self.signature, own)

    @staticmethod
    def _paired(given: inspect.Signature, own: inspect.Signature) -> dict[str, str]:
        """The name here of each parameter of NumPy's: its own, or that of the next one left."""
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        left = [
            p.name for p in own.parameters.values()
            if p.kind in positional and p.name not in given.parameters
        ]  # fmt: skip
        pairs = {}
        for parameter in given.parameters.values():
            if parameter.name in own.parameters:
                pairs[parameter.name] = parameter.name
            elif parameter.kind in positional and parameter.name not in _IGNORED and left:
                pairs[parameter.name] = left.pop(0)
        return pairs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.signature is None:
            return called(self.mine, *args, **kwargs)
        try:
            arguments = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"np.{self.name}: {error}") from None
        several: tuple[Any, ...] = ()
        named: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for name, value in arguments.items():
            kind = self.signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                several = value
            elif kind is inspect.Parameter.VAR_KEYWORD:
                options |= value
            elif value is np._NoValue:
                continue
            elif name in self._places and not self._is_option(name, value):
                named[self._places[name]] = value
            else:
                options[name] = value
        return self._with_options(several, named, options)

    def _is_option(self, name: str, value: Any) -> bool:
        """Whether an argument that ours has too is one that means nothing as it is given."""
        return name == "dtype" and value is None

    def _with_options(
        self, several: tuple[Any, ...], named: dict[str, Any], options: dict[str, Any]
    ) -> Any:
        out = options.pop("out", None)
        if out is not None and any(o is not None for o in _listed(out)):
            (target,) = _listed(out)
            if not _may_change(target):
                _refuse_out(self.name, self.mine)
            target.change_to(self._with_options(several, named, options))
            return target
        kept = {n: v for n, v in options.items() if v is not None and n not in _IGNORED}
        if kept.get("where") is True:
            del kept["where"]
        first = next(iter(self._taken))
        mask, start = kept.pop("where", None), kept.pop("initial", None)
        dtype = kept.pop("dtype", None)
        if kept:
            raise ArgumentError(
                f"np.{self.name}: there is no argument {next(iter(kept))!r} for what is traced",
                hint=f"pg.{self.mine} takes ({', '.join(self._taken)})",
            )
        if dtype is not None and self.mine in ("mean", "var", "std", "nanmean", "nanvar", "nanstd"):
            named[first] = called("astype", named[first], dtype)
            dtype = None
        if mask is not None:
            found = self._masked(first, named, mask, start)
        else:
            found = called(self.mine, *_in_front(self._taken, several, named), **named)
        if start is not None:
            if self.mine not in _EXTREME:
                raise ArgumentError(f"np.{self.name} of what is traced takes no initial value")
            found = called(_EXTREME[self.mine], found, start)
        return found if dtype is None else called("astype", found, dtype)

    def _masked(self, first: str, named: dict[str, Any], mask: Any, start: Any) -> Any:
        """The reduction of the elements at which `mask` is true."""
        x = named[first]
        if self.mine in ("mean", "var", "std"):
            named[first] = called("where", mask, x, math.nan)
            found = called(f"nan{self.mine}", **named)
            chosen = called("logical_and", mask, called("isnan", x))
            bad = called("any", chosen, named.get("axis"), named.get("keepdims", False))
            return called("where", bad, math.nan, found)
        neutral = start if self.mine in ("max", "min") else _NEUTRAL.get(self.mine)
        if neutral is None:
            raise ArgumentError(f"np.{self.name} with where= takes an initial value")
        named[first] = called("where", mask, x, neutral)
        return called(self.mine, *_in_front(self._taken, (), named), **named)


def _in_front(
    taken: Mapping[str, inspect.Parameter], several: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments that have to be given by position, and others in any number behind them."""
    lead = []
    for name, parameter in taken.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            break
        if name in named and (several or parameter.kind is inspect.Parameter.POSITIONAL_ONLY):
            lead.append(named.pop(name))
    return (*lead, *several)


def _listed(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)


# Functions that mean their arguments in a way of their own, with NumPy's parameters.


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None, **options: Any,
) -> Any:  # fmt: skip
    if out is not None:
        _refuse_out("clip", "clip")
    low = min if a_min is None or a_min is np._NoValue else a_min
    high = max if a_max is None or a_max is np._NoValue else a_max
    return called("clip", a, *(None if v is np._NoValue else v for v in (low, high)))


def _reshape(a: Any, shape: Any, order: str = "C", *, copy: Any = None, **names: Any) -> Any:
    return _in_order(a, shape, order)


def _in_order(a: Any, shape: Any, order: str) -> Any:
    """The elements in another shape, taken and put in row-major or column-major order."""
    if order in ("C", "K", "A"):
        return called("reshape", a, shape)
    if order != "F":
        raise ArgumentError(f"order is 'C', 'F', 'A' or 'K', not {order!r:.60}")
    wanted = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return called("transpose", called("reshape", called("transpose", a), wanted[::-1]))


def _ravel(a: Any, order: str = "C") -> Any:
    return _in_order(a, (-1,), order)


def _take(
    a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:  # fmt: skip
    if out is not None:
        _refuse_out("take", "take")
    extent = a.size if axis is None else called("asarray", a).shape[axis]
    if mode == "wrap":
        indices = called("remainder", indices, extent)
    elif mode == "clip":
        indices = called("clip", indices, 0, extent - 1)
    return called("take", a, indices, axis)


def _where(condition: Any, *branches: Any) -> Any:
    if len(branches) != 2:
        raise ArgumentError(
            "np.where of one argument has as many elements as are true, and shapes are fixed",
            hint="choose between arrays of one shape with pg.where(condition, x, y)",
        )
    return called("where", condition, *branches)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: Any = None, axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    found = called("linspace", start, stop, num, endpoint, dtype=dtype)
    found = found if axis == 0 else called("moveaxis", found, 0, axis)
    gaps = num - 1 if endpoint else num
    return (found, (stop - start) / gaps) if retstep else found


def _logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    found = called("power", base, _linspace(start, stop, num, endpoint, axis=axis))
    return found if dtype is None else called("astype", found, dtype)


def _geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers whose ratios are equal: negative ones between negative ends."""
    sign = called("sign", start)
    first, last = (called("log", called("multiply", sign, v)) for v in (start, stop))
    powers = called("exp", _linspace(first, last, num, endpoint, axis=axis))
    found = called("multiply", sign, powers)
    return called("astype", found, "float64" if dtype is None else dtype)


def _like(name: str) -> Callable[..., Any]:
    """`zeros_like` and its kind, with a shape of its own where one is given."""

    def made(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        dtype = a.dtype if dtype is None else dtype
        return called(name, a.shape if shape is None else shape, dtype)

    return made


def _full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Any:  # fmt: skip
    like = called("asarray", a)
    return called("full", like.shape if shape is None else shape, fill_value, dtype or like.dtype)


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if callable(mode):
        raise ArgumentError("np.pad with a function as mode writes to an array in place")
    if isinstance(pad_width, dict):
        widths = [(0, 0)] * array.ndim
        for axis, width in pad_width.items():
            widths[axis] = width if isinstance(width, tuple) else (width, width)
        pad_width = widths
    return called("pad", array, pad_width, mode, **options)


def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    if out is not None:
        _refuse_out("einsum", "einsum")
    dtype = options.get("dtype")
    if dtype is None:
        return called("einsum", *operands)
    # Behind a string all are arrays; without one every other argument is, but for the result's.
    by_string = isinstance(operands[0], str)
    last = len(operands) if by_string else len(operands) // 2 * 2
    places = range(1, last) if by_string else range(0, last, 2)
    cast = [called("astype", called("asarray", operands[i]), dtype) if i in places else operands[i]
            for i in range(len(operands))]  # fmt: skip
    return called("einsum", *cast)


def _shape(a: Any) -> Any:
    return called("asarray", a).shape


def _ndim(a: Any) -> int:
    return len(_shape(a))


def _size(a: Any, axis: Any = None) -> Any:
    shape = _shape(a)
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(shape[i] for i in axes)


def _result_type(*arrays: Any) -> Any:
    return np.result_type(*(a.dtype if isinstance(a, Handle) else a for a in arrays))


def _min_scalar_type(a: Any) -> Any:
    return a.dtype


def _can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    return np.can_cast(from_.dtype, to, casting)  # type: ignore[arg-type]


def _common_type(*arrays: Any) -> Any:
    return np.common_type(*(np.zeros(0, a.dtype) for a in arrays))


def _iscomplexobj(x: Any) -> bool:
    return x.dtype.kind == "c"  # type: ignore[no-any-return]


def _isrealobj(x: Any) -> bool:
    return not _iscomplexobj(x)


def _real_if_close(a: Any, tol: float = 100) -> Any:
    """Real numbers as they are: whether complex ones become real depends on their parts."""
    if _iscomplexobj(a):
        raise DTypeError(
            f"np.real_if_close of {a.type} would have a dtype that depends on its numbers",
            hint="pg.real(z) drops the imaginary parts",
        )
    return a


def _sort_complex(a: Any) -> Any:
    value = called("asarray", a)
    wide = np.result_type(value.dtype, np.complex64)
    return called("sort", called("astype", value, wide))


def _vdot(a: Any, b: Any) -> Any:
    return called("dot", called("conj", called("ravel", a)), called("ravel", b))


def _last_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return called("diagonal", x, offset, -2, -1)


def _last_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return called("trace", x, offset, -2, -1, dtype=dtype)


def _fftshift(x: Any, axes: Any = None) -> Any:
    places = _axes(x, axes)
    return called("roll", x, [x.shape[a] // 2 for a in places], places)


def _ifftshift(x: Any, axes: Any = None) -> Any:
    places = _axes(x, axes)
    return called("roll", x, [-(x.shape[a] // 2) for a in places], places)


def _axes(x: Any, axes: Any) -> list[int]:
    if axes is None:
        return list(range(x.ndim))
    return [axes] if isinstance(axes, int) else list(axes)


def _poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with these zeros."""
    narrow = seq_of_zeros.dtype.kind != "f" or seq_of_zeros.dtype.itemsize < 4
    zeros = called("astype", seq_of_zeros, "float64") if narrow else seq_of_zeros
    found = called("ones", (1,), zeros.dtype)
    for zero in zeros:
        found = called("convolve", found, called("stack", [called("ones_like", zero), -zero]))
    return found


def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`func1d` of each vector along an axis; what it gives lies in the place of that axis."""
    moved = called("moveaxis", arr, axis, -1)
    rows = called("reshape", moved, (math.prod(moved.shape[:-1]), moved.shape[-1]))
    results = [called("asarray", func1d(row, *args, **kwargs)) for row in rows]
    shape = results[0].shape
    found = called("reshape", called("stack", results), (*moved.shape[:-1], *shape))
    lead = moved.ndim - 1
    places = list(range(lead, lead + len(shape)))
    return called("moveaxis", found, places, [axis % arr.ndim + i for i in range(len(shape))])


def _apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    for axis in [axes] if isinstance(axes, int) else axes:
        found = func(a, axis)
        a = found if found.ndim == a.ndim else called("expand_dims", found, axis)
    return a


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """What each function gives where its condition is true; of several conditions the last."""
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if isinstance(condlist, np.ndarray) and condlist.ndim > x.ndim:
        conditions = list(condlist)
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        default = called("logical_not", reduce(lambda p, q: called("logical_or", p, q), conditions))
        conditions, functions = [default, *conditions], [functions[-1], *functions[:-1]]
    if len(functions) != len(conditions):
        raise ArgumentError(
            f"np.piecewise takes {len(conditions)} functions or one more, not {len(functions)}"
        )
    found = called("zeros_like", x)
    for condition, function in zip(conditions, functions, strict=True):
        value = function(x, *args, **kw) if callable(function) else function
        found = called("where", condition, called("astype", value, x.dtype), found)
    return found


def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> Any:
    if a.ndim != 2 or wrap:
        raise ArgumentError("np.fill_diagonal of what is traced takes a matrix, and no wrap=True")
    return called("where", np.eye(*a.shape, dtype=bool), val, a)


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    return called("where", where, src, dst)


def _putmask(a: Any, mask: Any, values: Any) -> Any:
    if np.ndim(values) != 0:
        raise ArgumentError("np.putmask of what is traced takes one value")
    return called("where", mask, values, a)


def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> Any:
    flat = called("set_slice", called("ravel", a), np.asarray(ind).reshape(-1), v)
    return called("reshape", flat, a.shape)


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> Any:
    places = np.asarray(indices)
    if axis is None:
        return _put(arr, places, values)
    grid: list[Any] = list(np.indices(places.shape, sparse=True))
    grid[axis] = places
    return called("set_slice", arr, tuple(grid), values)


def _in_place(name: str, given: Callable[..., Any]) -> Callable[..., Any]:
    """A function that writes to an array, where that may be assigned to; `given` is its result."""

    def call(array: Any, *args: Any, **kwargs: Any) -> None:
        if not _may_change(array):
            raise ArgumentError(
                f"np.{name} writes to an array in place, and what is traced does not change",
                hint="pg.set_slice(x, index, value) is a new array",
            )
        array.change_to(given(array, *args, **kwargs))

    return call


_CALLED: dict[str, Callable[..., Any]] = {
    "apply_along_axis": _apply_along_axis,
    "apply_over_axes": _apply_over_axes,
    "can_cast": _can_cast,
    "clip": _clip,
    "common_type": _common_type,
    "einsum": _einsum,
    "empty_like": _like("zeros"),
    "fft.fftshift": _fftshift,
    "fft.ifftshift": _ifftshift,
    "full_like": _full_like,
    "geomspace": _geomspace,
    "iscomplexobj": _iscomplexobj,
    "isrealobj": _isrealobj,
    "linalg.diagonal": _last_diagonal,
    "linalg.trace": _last_trace,
    "linspace": _linspace,
    "logspace": _logspace,
    "min_scalar_type": _min_scalar_type,
    "ndim": _ndim,
    "ones_like": _like("ones"),
    "pad": _pad,
    "piecewise": _piecewise,
    "poly": _poly,
    "ravel": _ravel,
    "real_if_close": _real_if_close,
    "reshape": _reshape,
    "result_type": _result_type,
    "shape": _shape,
    "size": _size,
    "take": _take,
    "sort_complex": _sort_complex,
    "vdot": _vdot,
    "where": _where,
    "zeros_like": _like("zeros"),
    "copyto": _in_place("copyto", _copyto),
    "fill_diagonal": _in_place("fill_diagonal", _fill_diagonal),
    "place": _in_place("place", _putmask),
    "put": _in_place("put", _put),
    "put_along_axis": _in_place("put_along_axis", _put_along_axis),
    "putmask": _in_place("putmask", _putmask),
}  # fmt: skip


# Those to which a list is a list of arrays.
_OF_LISTS = ("einsum", "linalg.multi_dot", "piecewise")


def _original(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = attrgetter(name)(np)
    except AttributeError:
        return None
    return found


@cache
def known() -> dict[Callable[..., Any], tuple[str, str | Callable[..., Any]]]:
    """NumPy's functions, with the dotted names behind `numpy.` and what they are called by here."""
    found: dict[Callable[..., Any], tuple[str, str | Callable[..., Any]]] = {}
    named: list[tuple[str, str | Callable[..., Any]]] = [*table().items(), *_CALLED.items()]
    for name, mine in named:
        original = _original(name)
        if original is not None:
            found.setdefault(original, (name, mine))
    return found


def names() -> frozenset[str]:
    """The names behind `numpy.` of all functions that there are here."""
    return frozenset((*table(), *_CALLED))


@cache
def counterpart(original: Callable[..., Any]) -> Callable[..., Any] | None:
    """What a function of NumPy's is called by here; None for one that is not here."""
    if original not in known():
        return None
    name, mine = known()[original]
    if isinstance(mine, str):
        return Counterpart(name, original, mine)
    return mine if name in _OF_LISTS else partial(_of_arrays, mine)


def _of_arrays(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives of lists with handles in them as arrays."""
    given = {name: _as_array(value) for name, value in kwargs.items()}
    return function(*map(_as_array, args), **given)


def _as_array(given: Any) -> Any:
    is_list = isinstance(given, list | tuple) and handles(given)
    return called("array", given) if is_list else given


def missing(name: str, instead: str = "") -> ArgumentError:
    """What is raised for a function of NumPy's that is not here; `name` is its dotted name."""
    short = name.removeprefix("numpy.")
    reason = NOT_BECAUSE.get(short, "") or written_instead(short.rpartition(".")[2])
    near = near_matches(short, sorted(names()))
    add = f"pg.extend.implements(np.{short})(function) adds one"
    parts = [part for part in (instead or reason, near, add) if part]
    return ArgumentError(f"{name} has no counterpart here", hint="; ".join(parts))


def call_function(
    original: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], instead: Any
) -> Any:
    """What a function of NumPy's gives, with handles among its arguments."""
    found = implemented.get(original) or counterpart(original)
    if found is None:
        name = f"{original.__module__}.{original.__name__}"
        raise missing(name, instead(original.__name__, name))
    return found(*args, **kwargs)


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """What a ufunc, or one of its methods, gives, with handles among its operands."""
    if method == "__call__" and ufunc in implemented:
        return implemented[ufunc](*inputs, **options)
    name = _name_of(ufunc)
    if name is None:
        raise missing(f"numpy.{ufunc.__name__}")
    if any(o is not None for o in _listed(options.get("out"))):
        (target,) = _listed(options["out"])
        if not _may_change(target):
            _refuse_out(ufunc.__name__, name)
        kept = {n: v for n, v in options.items() if n != "out"}
        found = _METHODS.get(method, _refused)(ufunc, name, inputs, kept)
        mask = options.get("where", True)
        target.change_to(found if mask is True else called("where", mask, found, target))
        return target
    return _METHODS.get(method, _refused)(ufunc, name, inputs, options)


def _name_of(ufunc: np.ufunc) -> str | None:
    """The name here of a ufunc of NumPy's or SciPy's."""
    if ufunc in known():
        mine = known()[ufunc][1]
        return mine if isinstance(mine, str) else None
    return SPECIAL.get(ufunc.__name__)


def _applied(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    dtype = options.get("dtype")
    mask = options.get("where", True)
    if dtype is not None and np.dtype(dtype).kind != "b":
        inputs = [_cast(called("asarray", x), dtype) for x in inputs]
    axis = {"axis": options["axis"]} if ufunc is np.vecdot and "axis" in options else {}
    strange = [n for n in ("axes", "axis", "keepdims") if options.get(n) and n not in axis]
    if strange:
        raise ArgumentError(f"np.{ufunc.__name__} of what is traced takes no {strange[0]}=")
    found = called(name, *inputs, **axis)
    if mask is True:
        return found
    return called("where", mask, found, called("zeros_like", found))


def _cast(x: Any, dtype: Any) -> Any:
    """`x` in the dtype that was given: conditions and their kind take what there is."""
    return x if dtype is None or np.dtype(dtype).kind == "b" else called("astype", x, dtype)


_REDUCED = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
    "logical_or": "any", "fmax": "nanmax", "fmin": "nanmin", "logaddexp": "logsumexp",
}  # fmt: skip


def _reduce(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A reduction over one axis or several: one that is here, or one element after the other."""
    (x,) = inputs
    x = called("asarray", x)
    axis = options.get("axis", 0)
    keepdims = bool(options.get("keepdims", False))
    mask, start = options.get("where", True), options.get("initial", np._NoValue)
    x = x if name in ("add", "multiply") else _cast(x, options.get("dtype"))
    if name in _REDUCED and name not in ("logaddexp", "fmax", "fmin", "logical_and", "logical_or"):
        given = {"keepdims": keepdims, "where": mask, "dtype": options.get("dtype")}
        given = given if name in ("add", "multiply") else {"keepdims": keepdims, "where": mask}
        original = getattr(np, _REDUCED[name])
        initial = {} if start in (np._NoValue, None) else {"initial": start}
        return Counterpart(_REDUCED[name], original, _REDUCED[name])(
            x, axis=axis, **given, **initial
        )
    if mask is not True:
        raise ArgumentError(f"np.{ufunc.__name__}.reduce of what is traced takes no where=")
    if name in _REDUCED:
        found = called(_REDUCED[name], x, axis, keepdims)
        return found if start in (np._NoValue, None) else called(name, found, start)
    found = x
    axes = _axes(x, axis if not isinstance(axis, int) else [axis])
    for a in sorted({a % x.ndim for a in axes}, reverse=True):
        parts = list(called("unstack", found, axis=a))
        parts = parts if start in (np._NoValue, None) else [start, *parts]
        found = reduce(lambda p, q: called(name, p, q), parts)
        found = called("expand_dims", found, a) if keepdims else found
    return found


def _accumulate(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Running results along an axis: a function that is here, or one element after the other."""
    (x,) = inputs
    x, axis = called("asarray", x), options.get("axis", 0)
    axis = 0 if axis is None and x.ndim == 1 else axis
    if name == "add":
        return called("cumsum", x, axis, dtype=options.get("dtype"))
    if name == "multiply" and function_named("cumprod") is not None:
        return called("cumprod", x, axis, dtype=options.get("dtype"))
    x = _cast(x, options.get("dtype"))
    parts = list(running(called("unstack", x, axis=axis), lambda p, q: called(name, p, q)))
    return called("stack", parts, axis)


def _outer(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """The function of each element of one array with each of another."""
    x, y = (called("asarray", v) for v in inputs)
    x = called("reshape", x, (*x.shape, *(1,) * y.ndim))
    return _applied(ufunc, name, (x, y), options)


def _at(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> None:
    """Sums at indices of the first axis, in an array that may be assigned to."""
    array, index, *values = inputs
    if not _may_change(array) or name not in ("add", "subtract") or isinstance(index, tuple):
        _refused(ufunc, name, inputs, options)
    places = called("asarray", index)
    shape = (*places.shape, *array.shape[1:])
    parts = called(
        "broadcast_to", called("astype", called("asarray", values[0]), array.dtype), shape
    )
    parts = called("negative", parts) if name == "subtract" else parts
    array.change_to(called("scatter_add", array, places, parts))


def _refused(ufunc: Any, name: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    raise ArgumentError(
        f"np.{ufunc.__name__} cannot be built into a program this way",
        hint="what is traced does not change: pg.scatter_add(x, index, updates) and "
        "pg.set_slice(x, index, value) are new arrays",
    )


_METHODS = {
    "__call__": _applied, "reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at,
}  # fmt: skip
