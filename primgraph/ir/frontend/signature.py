"""Check call arguments: errors name the argument, the signature and near matches.

Annotations define which types each argument accepts, so that nothing is written down twice.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, partial, wraps
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, ParamSpec, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from primgraph.base.array_functions import ARGUMENTS, LEFT_OUT, OPERANDS, POSITIONS
from primgraph.errors import ArgumentError, PrimgraphError, UnknownValueError, near_matches
from primgraph.ir.dims import Dim

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound="type[Any]")
Kind: TypeAlias = "tuple[Callable[[Any], bool], str]"
"""Whether a value is of that kind, and what the kind is called."""

# Alternatives to numbers in a traced function, and where numbers are available.
_CHOICE = "pg.where(condition, x, y) chooses between arrays"
_ELSEWHERE = "pg.tensor(x) is an eager tensor, whose values Python can test"

# Parameters whose values are tuples of integers.
_TUPLES = ("shape", "axes", "new_shape", "reps")

# Exceptions of Python and NumPy for arguments of unexpected types.
UNFIT = (TypeError, ValueError, AttributeError, LookupError, OverflowError)


def _is_integer(value: Any) -> bool:
    # A symbolic size is accepted as an integer; code that needs the number raises its own error.
    return isinstance(value, int | np.integer | Dim) and not isinstance(value, bool)


def _is_collection(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_ordered(value: Any) -> bool:
    return _is_collection(value) and not isinstance(value, Set)


def _is_listing(value: Any) -> bool:
    return _is_ordered(value) and not isinstance(value, Iterator)


_KINDS: dict[Any, Kind] = {
    bool: (lambda v: isinstance(v, bool | np.bool_), "True or False"),
    int: (_is_integer, "an integer"),
    float: (lambda v: isinstance(v, int | float | np.integer | np.floating), "a number"),
    str: (lambda v: isinstance(v, str), "a string"),
    os.PathLike: (lambda v: isinstance(v, os.PathLike), "a path"),
    Callable: (callable, "a function"),
    Mapping: (lambda v: isinstance(v, Mapping), "a mapping"),
    Collection: (_is_collection, "a list"),
    Iterable: (_is_ordered, "a list"),
    **dict.fromkeys((list, Sequence), (_is_listing, "a list")),
    NoneType: (lambda v: v is None, "None"),
}


def _kind(hint: Any) -> Kind | None:
    """Return the check for an annotation; None if it cannot be checked."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [_kind(h) for h in get_args(hint)]
        known = [k for k in kinds if k is not None]
        if len(known) < len(kinds):
            return None
        words = dict.fromkeys(words for _, words in known)
        return lambda v: any(fits(v) for fits, _ in known), " or ".join(words)
    hint = get_origin(hint) or hint
    if hint in _KINDS:
        return _KINDS[hint]
    if hint is Any or not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return None
    article = "an" if hint.__name__[0] in "AEIOU" else "a"
    return lambda v: isinstance(v, hint), f"{article} {hint.__name__}"


def _parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters; none if one is not imported at run time.

    The result's type, which may be imported for type checkers only, does not matter.
    """
    texts = {n: t for n, t in getattr(function, "__annotations__", {}).items() if n != "return"}
    known = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return get_type_hints(SimpleNamespace(__annotations__=texts), known)
    except NameError:
        return {}


@cache
def _kinds_of(function: Callable[..., Any]) -> dict[str, Kind]:
    """Return the checks of the parameters of `function`."""
    hints = _parameter_hints(function)
    several = ("VAR_POSITIONAL", "VAR_KEYWORD")
    single = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind.name not in several
    ]
    found = {name: _kind(hints[name]) for name in single if name in hints}
    return {name: kind for name, kind in found.items() if kind is not None}


@cache
def _names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of positional parameters, in order, without `*args`."""
    listed = inspect.signature(function).parameters.values()
    return tuple(p.name for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


@cache
def _unnamed_of(function: Callable[..., Any]) -> frozenset[str]:
    """Return the positional-only parameters, whose names may be keywords in `**kwargs`."""
    listed = inspect.signature(function).parameters.values()
    return frozenset(p.name for p in listed if p.kind is p.POSITIONAL_ONLY)


@cache
def _deceived_by(function: Callable[..., Any]) -> dict[str, Kind]:
    """Return checks for parameters that would accept a wrong type silently.

    Any object is true or false. Mappings and sets are iterable like lists, but iterate over keys,
    or in any order.
    """
    found: dict[str, Kind] = {}
    for name, kind in _kinds_of(function).items():
        if kind is _KINDS[bool]:
            found[name] = kind
        # Parameters that may also be functions are checked by the callee.
        elif kind[0]([]) and not kind[0]({}) and not kind[0](print):
            found[name] = (partial(_is_no_trap, kind), kind[1])
    return found


def _is_no_trap(kind: Kind, value: Any) -> bool:
    """Return whether a value fits, or is at least no mapping or set, which iterate silently."""
    return not isinstance(value, Mapping | Set) or kind[0](value)


def signature_error(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ArgumentError | None:
    """Return the error for a call that does not fit the signature of `function`, or None."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        listed = [p for p in signature.parameters.values() if p.name != "self"]
        open_ended = any(p.kind is p.VAR_KEYWORD for p in listed)
        unknown = [] if open_ended else [k for k in kwargs if k not in signature.parameters]
        fault = f"there is no argument {unknown[0]!r}" if unknown else str(error)
        near = _near(unknown[0], [p.name for p in listed]) if unknown else ""
        if not near and unknown:
            near = f"{LEFT_OUT[unknown[0]]};" if unknown[0] in LEFT_OUT else ""
        if not unknown:
            near = _as_tuple(args, listed)
            if function.__name__ in POSITIONS and "many" in fault:
                near = f"{POSITIONS[function.__name__]};"
        bare = [p.replace(annotation=p.empty) for p in listed]
        takes = f"it takes {signature.replace(parameters=bare, return_annotation=signature.empty)}"
        return ArgumentError(f"{_name(function, args)}: {fault}", hint=f"{near} {takes}".strip())
    return None


def _as_tuple(args: tuple[Any, ...], listed: Sequence[inspect.Parameter]) -> str:
    """Return the hint to pass sizes or axes as one tuple, if they were given one by one."""
    place = next((i for i, p in enumerate(listed) if p.name in _TUPLES), len(args))
    given = args[place:]
    if len(given) < 2 or not all(type(a) is int for a in given):
        return ""
    return f"write {listed[place].name} as one tuple: {given};"


def _near(name: str, known: Sequence[str]) -> str:
    """Return the hint with a parameter of similar meaning or spelling."""
    meant = ARGUMENTS.get(name)
    if meant in known:
        return f"did you mean {meant!r}?"
    return near_matches(name, [k for k in known if ARGUMENTS.get(k) not in known])


def _name(function: Callable[..., Any], args: Sequence[Any] = ()) -> str:
    """Return the user's name of `function`: the class for a constructor, and the class of the
    object for an inherited method."""
    name = str(getattr(function, "__qualname__", type(function).__name__))
    owner, dot, member = name.rpartition("<locals>.")[2].rpartition(".")
    if args and any(kind.__name__ == owner for kind in type(args[0]).__mro__):
        owner = type(args[0]).__name__
    return owner if member == "__init__" and owner else f"{owner}{dot}{member}"


def call_user_function(function: Callable[..., R], /, *arguments: Any, **named: Any) -> R:
    """Call a user's function; errors explain arguments that it does not accept."""
    try:
        return function(*arguments, **named)
    except UnknownValueError as error:
        known = "without pg.jit" in error.hint
        others = (_CHOICE,) if known else (_CHOICE, _ELSEWHERE)
        hints = [h for h in others if h.partition("(")[0] not in error.hint]
        error.hint = "; ".join([error.hint, *hints])
        raise
    except (TypeError, ValueError) as error:
        found = None
        if isinstance(error.__cause__, PrimgraphError):
            found = _array_misfit(error)
        elif isinstance(error, TypeError) and not isinstance(error, PrimgraphError):
            found = signature_error(function, arguments, named)
        if found is None:
            raise
        raise found from None


def _array_misfit(error: Exception) -> ArgumentError | None:
    """Return the error for NumPy's "setting an array element with a sequence", of a handle."""
    if isinstance(error, PrimgraphError) or not str(error).startswith("setting an array element"):
        return None
    found = ArgumentError(
        "an array that was computed by NumPy before tracing cannot hold what is traced",
        hint="write r = np.copy(array) in the function, and assign to r",
    )
    # The place of the cause is the line of the assignment.
    cause = error.__cause__
    found.place = cause.place if isinstance(cause, PrimgraphError) else None
    return found


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate `function` to raise `ArgumentError` for arguments that do not fit."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            _require(function, args, kwargs, _kinds_of(function))
            return function(*args, **kwargs)
        except UNFIT as error:
            found = _explain_failure(function, args, kwargs, error)
            if found is error:
                raise
            raise found from None

    return call


def checked_late(function: Callable[P, R]) -> Callable[P, R]:
    """Like `check_arguments`, for a function with better error messages of its own.

    Only arguments that would be silently misunderstood are checked before the call. Others are
    explained if the function fails with a Python error or, for a constructor, afterwards.
    """
    constructs = function.__name__ == "__init__"

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            _require(function, args, kwargs, _deceived_by(function))
            result = function(*args, **kwargs)
        except UNFIT as error:
            found = _explain_failure(function, args, kwargs, error)
            if found is error:
                raise
            raise found from None
        if constructs:
            _require(function, args, kwargs, _kinds_of(function))
        return result

    return call


def _require(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    kinds: Mapping[str, Kind],
) -> None:
    """Raise `ArgumentError` for the first argument that fails its check."""
    if not kinds:
        return
    named = kwargs.items() if kwargs.keys().isdisjoint(_unnamed_of(function)) else ()
    for name, value in [*zip(_names_of(function), args, strict=False), *named]:
        kind = kinds.get(name)
        if kind is not None and not kind[0](value):
            given = f"{type(value).__name__} {' '.join(repr(value).split()):.60}"
            hint = OPERANDS.get(f"{function.__name__}.{name}", "")
            if isinstance(value, Mapping) and kind[0]([]):
                hint = "items of a mapping are its keys: put it in a list, or give its values"
            elif not hint and _are_swapped(function, args, name, kinds):
                names = [n for n in _names_of(function) if n != "self"]
                hint = f"are arguments swapped? it takes ({', '.join(names)})"
            raise ArgumentError(
                f"{_name(function, args)}: {name} is {kind[1]}, not {given}", hint=hint
            )


def _are_swapped(
    function: Callable[..., Any], args: tuple[Any, ...], name: str, kinds: Mapping[str, Kind]
) -> bool:
    """Return whether the argument for `name` and another one seem swapped."""
    names = _names_of(function)
    given = dict(zip(names, args, strict=False))
    if name not in given:
        return False
    return any(
        kinds[name][0](value) and other in kinds and kinds[other][0](given[name])
        if other in kinds
        else kinds[name][0](value) and other != "self"
        for other, value in given.items()
        if other != name
    )


def _explain_failure(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> Exception:
    """Return the `ArgumentError` that explains a failed call, or `error` itself."""
    if isinstance(error, PrimgraphError):
        return error
    found = signature_error(function, args, kwargs)
    if found is not None:
        return found
    try:
        _require(function, args, kwargs, _kinds_of(function))
    except ArgumentError as mistake:
        return mistake
    return error


def checked_methods(*left_out: str, late: bool = False) -> Callable[[C], C]:
    """Check calls of the constructor and of all public methods except `left_out`."""
    check = checked_late if late else check_arguments

    def declare(cls: C) -> C:
        for name, item in list(vars(cls).items()):
            if name == "__init__":
                # One that is generated at its first use is generated now.
                item = cls.__init__
            public = name == "__init__" or not name.startswith("_")
            if public and name not in left_out and inspect.isfunction(item):
                setattr(cls, name, check(item))
        return cls

    return declare
