"""Mapping of calls with NumPy's signature to calls of primgraph's functions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import function_named, named_function
from primgraph.operators.names import Row
from primgraph.operators.promotion import NUMBERS, array_of, either
from primgraph.operators.variable import handles

# NumPy's options on how a result is computed or stored, which have no effect here.
_IGNORED = frozenset((
    *("casting", "copy", "device", "like", "optimize", "order", "overwrite_input", "signature"),
    "subok",
))  # fmt: skip
# Reductions of NumPy with `where`, and the neutral element that replaces masked elements.
_NEUTRAL: dict[str, Any] = {
    "sum": 0,
    "prod": 1,
    "any": False,
    "all": True,
    "nansum": 0,
    "nanprod": 1,
}
_EXTREME = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}


def call_named(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the public function of that name."""
    return named_function(name)(*args, **kwargs)


def may_change(array: Any) -> bool:
    """Return whether an array of a program supports assignment to its elements."""
    return isinstance(array, Handle) and hasattr(type(array), "change_to")


def has_elements(given: Any) -> bool:
    """Return whether all variables and tensors within `given` are tensors."""
    return all(h._has_elements for h in handles((given,)))


def as_elements(given: Any) -> Any:
    """Return a tensor as an array, also within lists; anything else as it is."""
    if isinstance(given, list | tuple) and handles(given):
        return type(given)(map(as_elements, given))
    return np.asarray(given) if isinstance(given, Handle) else given


def write_out(name: str, out: Any, found: Any, casting: str = "same_kind") -> Any:
    """Write a result to the array of `out=`, and return that array.

    Results of tensors may be written to a NumPy array. Raises `DTypeError` where `casting` does not
    allow it, and `ShapeError` for another shape.
    """
    is_array = isinstance(out, np.ndarray) and has_elements(found)
    if not is_array and not may_change(out):
        refuse_out(name, name)
    if not np.can_cast(found.dtype, out.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(
            f"np.{name} cannot write {found.dtype} to out= of {out.dtype} with casting {casting!r}"
        )
    if found.shape != out.shape:
        raise ShapeError(f"np.{name} cannot write {found.type} to out= of shape {out.shape}")
    if is_array:
        np.copyto(out, np.asarray(found), casting="unsafe")
    else:
        out.change_to(call_named("astype", found, out.dtype))
    return out


def refuse_out(name: str, mine: str) -> None:
    raise ArgumentError(
        f"np.{name} cannot write to a NumPy array what is not computed yet",
        hint=f"a = pg.{mine}(...) is a new array; in a function that is traced or differentiated, "
        "a = np.copy(a) may be written to; the elements of a tensor are written by "
        "a[...] = x.numpy()",
    )


_SPREADS = ("nanstd", "nanvar", "std", "var")
_JOINING = ("stack", "concatenate", "concat")


def _check_casts(name: str, arrays: Any, dtype: Any, casting: str) -> None:
    """Raise `DTypeError` for arrays that `casting` does not let become `dtype`."""
    found = [call_named("asarray", a).dtype for a in arrays]
    if not all(np.can_cast(d, dtype, casting) for d in found):  # type: ignore[arg-type]
        raise DTypeError(f"np.{name} cannot cast {found} to {dtype} with casting {casting!r}")


def _keep_one_freedom(name: str, arguments: dict[str, Any]) -> None:
    """Remove a `ddof` of 0, NumPy's default, beside `correction`. Raises for another `ddof`."""
    correction = arguments.get("correction")
    if correction is not None and correction is not np._NoValue:
        either(name, ddof=arguments.pop("ddof", 0) or None, correction=correction)


@final
class Counterpart:
    """NumPy function that is called by its own signature, with its counterpart here."""

    __slots__ = ("_fixed", "_places", "_renamed", "_taken", "mine", "name", "signature")

    def __init__(self, name: str, original: Callable[..., Any], row: Row) -> None:
        self.name, self.mine = name, row.target
        mine, self._fixed = self.mine, row.fixed
        self._renamed = {theirs: ours for ours, theirs in row.renamed.items()}
        own = inspect.signature(function_named(mine) or original)
        self._taken = own.parameters
        try:
            self.signature: inspect.Signature | None = inspect.signature(original)
        except ValueError:
            self.signature = None
        self._places = dict(self._renamed)
        if self.signature is not None:
            self._places = self._pair_parameters(self.signature, own) | self._renamed

    @staticmethod
    def _pair_parameters(given: inspect.Signature, own: inspect.Signature) -> dict[str, str]:
        """Map NumPy's parameters to ours: by name, or else the next remaining one."""
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
            kwargs = {self._renamed.get(n, n): value for n, value in kwargs.items()}
            return call_named(self.mine, *args, **self._fixed, **kwargs)
        known = self.signature.parameters
        # Arguments of ours that NumPy lacks, such as `size` of `nonzero`.
        more = {n: kwargs.pop(n) for n in [*kwargs] if n in self._taken and n not in known}
        try:
            arguments = self.signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentError(f"np.{self.name}: {error}") from None
        if self.mine in _JOINING:
            # A number among arrays is an array to NumPy, and does not take their dtype.
            first = next(iter(arguments))
            if isinstance(arguments[first], list | tuple):
                arguments[first] = [
                    array_of(a) if type(a) in NUMBERS else a for a in arguments[first]
                ]
        if self.mine in _SPREADS:
            _keep_one_freedom(f"np.{self.name}", arguments)
        several: tuple[Any, ...] = ()
        named: dict[str, Any] = {**more, **self._fixed}
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
        """Return whether an argument that ours has, too, has no effect with this value."""
        return name == "dtype" and value is None

    def _with_options(
        self, several: tuple[Any, ...], named: dict[str, Any], options: dict[str, Any]
    ) -> Any:
        out = options.pop("out", None)
        if out is not None and any(o is not None for o in as_tuple(out)):
            (target,) = as_tuple(out)
            if self.mine in _JOINING and options.get("dtype") is not None:
                raise ArgumentError(f"np.{self.name} takes out= or dtype=, not both")
            found = self._with_options(several, named, options)
            return write_out(self.mine, target, found, options.get("casting", "same_kind"))
        kept = {n: v for n, v in options.items() if v is not None and n not in _IGNORED}
        if kept.get("where") is True:
            del kept["where"]
        first = next(iter(self._taken))
        mask, start = kept.pop("where", None), kept.pop("initial", None)
        elements = None
        if start is not None and self.mine in ("max", "min"):
            # Convert it to the dtype of the elements, like NumPy.
            elements = named[first] = call_named("asarray", named[first])
            start = call_named("astype", start, elements.dtype)
        dtype = kept.pop("dtype", None)
        if dtype is not None and self.mine in _JOINING:
            _check_casts(self.name, named[first], dtype, options.get("casting", "same_kind"))
        if "mean" in kept and self.mine in _SPREADS:
            mean = kept.pop("mean")
            return self._about_mean(first, named, mean, True if mask is None else mask, dtype)
        if kept:
            raise ArgumentError(
                f"np.{self.name}: there is no argument {next(iter(kept))!r} for what is traced",
                hint=f"pg.{self.mine} takes ({', '.join(self._taken)})",
            )
        if dtype is not None and self.mine in ("mean", "var", "std", "nanmean", "nanvar", "nanstd"):
            named[first] = call_named("astype", named[first], dtype)
            dtype = None
        if elements is not None and elements.size == 0:
            # Without elements the initial value is the extremum.
            named.pop(first)
            shape = call_named("sum", elements, **named).shape
            found = call_named("broadcast_to", start, shape)
        elif mask is not None:
            found = self._reduce_masked(first, named, mask, start)
        else:
            found = call_named(self.mine, *_in_front(self._taken, several, named), **named)
        found = found if start is None else self._with_start(found, start)
        return found if dtype is None else call_named("astype", found, dtype)

    def _with_start(self, found: Any, start: Any) -> Any:
        """Return a reduction that begins with an initial value."""
        if self.mine in ("nanmax", "nanmin"):
            return call_named("fmax" if self.mine == "nanmax" else "fmin", found, start)
        if self.mine in ("nansum", "nanprod"):
            return call_named("add" if self.mine == "nansum" else "multiply", found, start)
        if self.mine not in _EXTREME:
            raise ArgumentError(f"np.{self.name} of what is traced takes no initial value")
        return call_named(_EXTREME[self.mine], found, start)

    def _about_mean(
        self, first: str, named: dict[str, Any], mean: Any, mask: Any, dtype: Any
    ) -> Any:
        """Return the mean squared distance from a given mean, or its root."""
        x = call_named("asarray", named[first])
        x = x if dtype is None else call_named("astype", x, dtype)
        squares = call_named("square", call_named("abs", call_named("subtract", x, mean)))
        kept = {n: named[n] for n in ("axis", "keepdims") if n in named}
        chosen = call_named("broadcast_to", call_named("asarray", mask), x.shape)
        if self.mine.startswith("nan"):
            chosen = call_named("logical_and", chosen, call_named("equal", x, x))
        total = call_named("sum", call_named("where", chosen, squares, 0), **kept)
        freedom = named.get("ddof", named.get("correction")) or 0
        count = call_named("count_nonzero", chosen, **kept)
        left = call_named("maximum", call_named("subtract", count, freedom), 0)
        found = call_named("divide", total, call_named("astype", left, total.dtype))
        return call_named("sqrt", found) if self.mine.endswith("std") else found

    def _reduce_masked(self, first: str, named: dict[str, Any], mask: Any, start: Any) -> Any:
        """Return the reduction of the elements where `mask` is true."""
        x = named[first]
        if self.mine in ("mean", "var", "std"):
            named[first] = call_named("where", mask, x, math.nan)
            found = call_named(f"nan{self.mine}", **named)
            chosen = call_named("logical_and", mask, call_named("isnan", x))
            bad = call_named("any", chosen, named.get("axis"), named.get("keepdims", False))
            return call_named("where", bad, math.nan, found)
        if self.mine in ("nanmax", "nanmin", "nanmean", "nanvar", "nanstd"):
            named[first] = call_named("where", mask, x, math.nan)
            return call_named(self.mine, **named)
        neutral = start if self.mine in ("max", "min") else _NEUTRAL.get(self.mine)
        if neutral is None:
            raise ArgumentError(f"np.{self.name} with where= takes an initial value")
        named[first] = call_named("where", mask, x, neutral)
        return call_named(self.mine, *_in_front(self._taken, (), named), **named)


def _in_front(
    taken: Mapping[str, inspect.Parameter], several: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Return the first arguments, up to one that is not given, followed by the variadic ones.

    Kinds of arrays recognise operands by their positions; see `Variable.operands`.
    """
    lead = []
    for name, parameter in taken.items():
        if name not in named or parameter.kind not in _POSITIONAL:
            break
        lead.append(named.pop(name))
    return (*lead, *several)


_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def as_tuple(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)
