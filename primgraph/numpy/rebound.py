"""Copies of functions that were written for NumPy, in which NumPy's names mean the drop-in.

A copy has the code of the original, and other values for those of its globals and of its closure
that are NumPy or `math`, functions out of these, or functions of the user's that mention such in
turn. What else the original finds there, the copy finds too, as it is then. Assignments in place
are rewritten, see `assignment_syntax`. Originals are left alone, and functions that assign to
globals are called themselves if their source is not known.
"""

from __future__ import annotations

import dis
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache, partial, wraps
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard, final

import numpy as np

from primgraph.base.atomic import Setting
from primgraph.base.providers import late, provider
from primgraph.base.user_lines import is_library, is_own_name
from primgraph.numpy.assignment_syntax import GLOBALS, assigns_to_globals, codes, rewritten
from primgraph.numpy.impure import Captured, warn_of_randomness, warning_stand_in
from primgraph.numpy.object_views import (
    has_methods,
    is_within,
    methods_of,
    parts_of,
    super_of_view,
    type_of_view,
    view_of_object,
)
from primgraph.operators.handle import are_in_place
from primgraph.operators.names import rows
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    from primgraph.numpy import assignments, changing, door
    from primgraph.numpy import mathematics as mathematics_module
else:
    assignments = late("primgraph.numpy.assignments")
    changing = late("primgraph.numpy.changing")
    door = late("primgraph.numpy.door")
    mathematics_module = late("primgraph.numpy.mathematics")


__all__ = [
    "Captured",
    "rebound",
    "referenced_names",
    "traceable",
    "warn_of_randomness",
]

# What Python itself looks for among the globals of a function.
_OF_PYTHON = ("__builtins__", "__file__", "__name__", "__package__", "__spec__")

# Modules that have NumPy's functions by the names of the array standard.
_SCIPYS = (
    "scipy", "scipy.integrate", "scipy.linalg", "scipy.signal", "scipy.special", "scipy.stats"
)  # fmt: skip
_OTHER_NUMPYS = ("array_api_compat.numpy", "scipy._external.array_api_compat.numpy",
                 "scipy._lib.array_api_compat.numpy")  # fmt: skip
# Modules of NumPy with a drop-in of their own.
_NUMPYS = {
    "numpy.fft": "primgraph.numpy.fft",
    "numpy.linalg": "primgraph.numpy.linalg",
    "numpy.random": "primgraph.numpy.random",
}

# What functions and methods of NumPy's are called that change an array.
_IN_PLACE = frozenset((
    "at", "copyto", "fill", "fill_diagonal", "partition", "place", "put", "put_along_axis",
    "putmask", "sort",
))  # fmt: skip


# The names of modules whose functions are followed, though they are installed.
_followed: ContextVar[tuple[str, ...]] = ContextVar("primgraph_followed_modules", default=())

# Of how many functions it is known what they mention and do.
_KEPT = 4096


@final
class _Globals(dict[str, Any]):
    """Globals of a copied function: its replacements, and the globals of the original."""

    def __init__(self, own: Mapping[str, Any], original: dict[str, Any]) -> None:
        super().__init__(own)
        self.original = original

    def __missing__(self, name: str) -> Any:
        return self.original[name]


def rebound(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` where nothing that it mentions is NumPy's, or else a copy of it.

    Functions of the user's that it calls are followed, other than those of installed packages.
    """
    inner = _inner(function)
    return _copy_with_callees(function) if _is_users(inner) else function


def traceable(
    function: Callable[..., Any], through: Sequence[str] = ()
) -> tuple[Callable[..., Any], type[Variable]]:
    """Return the function to call for tracing, and the class of its handles.

    Those of a function that was written for NumPy may be assigned to, if it or one that it calls
    changes anything in place; else arrays that it makes of numbers stay NumPy's. Functions of the
    modules named in `through` are followed as the user's are, also by what the function calls to
    differentiate or to map.
    """
    if not through:
        return _traceable(function)
    with Setting(_followed, tuple(through)):
        found, kind = _traceable(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with Setting(_followed, tuple(through)):
            return found(*args, **kwargs)

    return call, kind


def _traceable(function: Callable[..., Any]) -> tuple[Callable[..., Any], type[Variable]]:
    inner = _inner(function)
    if not _is_users(inner) or isinstance(inner.__globals__, _Globals):
        return function, Variable
    reached, _ = _reach(function)
    # What methods of the classes of followed modules change is not known.
    changes = bool(_followed.get()) or any(_changes(f.__code__) for f in reached)
    found = _copy_with_callees(function)
    if changes:
        return _with_methods(found, reached), changing.ChangingArray
    return (found if found is function else changing.with_fixed_arrays(found)), Variable


def _inner(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside of a partial or a method."""
    while isinstance(function, partial | MethodType):
        function = function.func if isinstance(function, partial) else function.__func__
    return function


def _owner(function: Callable[..., Any]) -> Any:
    """Return the object of which the function inside is a method, or None."""
    while isinstance(function, partial):
        function = function.func
    return function.__self__ if isinstance(function, MethodType) else None


def _rewrap_copy(
    function: Callable[..., Any], copy: FunctionType, copies: Mapping[int, Any]
) -> Callable[..., Any]:
    """The copy of a function as `function` is of that function: with arguments, or as a method."""
    if isinstance(function, partial):
        inner = _rewrap_copy(function.func, copy, copies)
        return partial(inner, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        owner = copies.get(id(function.__self__), function.__self__)
        return MethodType(_rewrap_copy(function.__func__, copy, copies), owner)
    return copy


def _reach(function: Callable[..., Any]) -> tuple[list[FunctionType], list[Any]]:
    """The user's functions that `function` may call, itself included, and objects of methods."""
    functions: dict[int, FunctionType] = {}
    objects: dict[int, Any] = {}
    names: set[str] = set()
    waiting, known = [_inner(function), _owner(function)], (0, 0)
    while waiting:
        while waiting:
            value = waiting.pop()
            if _is_users(value):
                if id(value) not in functions:
                    functions[id(value)] = value
                    names.update(_names(value.__code__))
                    waiting += _referenced_objects(value).values()
            elif id(value) not in objects and _has_methods(value):
                objects[id(value)] = value
        if objects and known != (len(names), len(objects)):
            known = len(names), len(objects)
            for kind in {type(value) for value in objects.values()}:
                waiting += methods_of(kind, names)
            for value in objects.values():
                waiting += parts_of(value, names)
    return list(functions.values()), list(objects.values())


def _copy_with_callees(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a function and of all of the user's that it may call.

    The function itself is returned if none mentions NumPy or changes anything in place.
    """
    functions, objects = _reach(function)
    reached = [f for f in functions if _code_of(f) is not None]
    is_plain = not any(_mentions(f) or _changes(f.__code__) for f in reached)
    inner = _inner(function)
    if is_plain or inner not in reached:
        return function
    copies: dict[int, Any] = {id(f): _blank(f) for f in reached}
    copies |= {id(value): view_of_object(value, copies, _distribution(value)) for value in objects}
    for original in reached:
        copy = copies[id(original)]
        if objects and "type" in _names(original.__code__):
            copy.__globals__["type"] = original.__globals__.get("type", type_of_view)
        for name, value in _globals_of(original):
            new = _instead_of(value, copies)
            if new is not value:
                copy.__globals__[name] = new
        for cell, place in zip(copy.__closure__ or (), original.__closure__ or (), strict=True):
            if cell is not place:
                value = place.cell_contents
                cell.cell_contents = _instead_of(value, copies)
    return _rewrap_copy(function, copies[id(inner)], copies)


def _code_of(function: FunctionType) -> CodeType | None:
    """Return the code of a copy of a function; None if it would assign to the globals of the copy.

    Code that changes nothing in place is that of the function.
    """
    code = function.__code__
    if not (_changes(code) or assigns_to_globals(code)):
        return code
    found = rewritten(code) or code
    return None if assigns_to_globals(found) else found


def _instead_of(value: Any, copies: Mapping[int, Any]) -> Any:
    """Return the replacement, in a copy, of an object that the original refers to."""
    if _is_users_module(value):
        return _Rebound(value, copies)
    return copies.get(id(value)) or _stands_for(value)


@final
class _Rebound:
    """A module of the user's as copies see it: with copies for functions that were followed."""

    def __init__(self, module: ModuleType, copies: Mapping[int, Any]) -> None:
        self._module = module
        self._copies = copies

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return self._copies.get(id(found), found)


@lru_cache(_KEPT)
def _changes(whole: CodeType) -> bool:
    """Whether a function of that code may change an array in place."""
    for code in codes(whole):
        named = {n for c in code.co_consts if isinstance(c, tuple) for n in c}
        if not _IN_PLACE.isdisjoint(code.co_names) or "out" in named:
            return True
        if "nan_to_num" in code.co_names and "copy" in named:
            return True
        for step in dis.get_instructions(code):
            if step.opname == "STORE_SUBSCR" or (step.opname, step.argval) == (
                "STORE_ATTR",
                "flat",
            ):
                return True
            if step.opname == "BINARY_OP" and step.argrepr.endswith("="):
                return True
    return False


def _with_methods(
    function: Callable[..., Any], reached: Sequence[FunctionType]
) -> Callable[..., Any]:
    """`function`, in which `x.sort()` is in place if one of those reached drops the result."""
    if not any(_drops(f.__code__) for f in reached):
        return function

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = are_in_place.get()
        try:
            are_in_place.set(True)
            return function(*args, **kwargs)
        finally:
            are_in_place.set(before)

    return call


@lru_cache(_KEPT)
def _drops(whole: CodeType) -> bool:
    """Whether a function of that code calls a method of NumPy's for what it does to an array."""
    for code in codes(whole):
        steps = [s.opname for s in dis.get_instructions(code)]
        names = [s.argval for s in dis.get_instructions(code)]
        for i, name in enumerate(names):
            if name in ("partition", "sort") and steps[i] in ("LOAD_ATTR", "LOAD_METHOD"):
                ends = (j for j in range(i, len(steps)) if steps[j].startswith(_ENDS))
                end = next(ends, len(steps) - 1)
                if steps[end] == "POP_TOP" and steps[end - 1].startswith("CALL"):
                    return True
    return False


# What comes behind a call whose result is used, and behind one whose result is dropped.
_ENDS = ("POP_TOP", "RETURN", "STORE_")


def _blank(function: FunctionType) -> FunctionType:
    """A copy with globals of its own, and cells of its own where these hold other things."""
    globals_ = function.__globals__
    own = _Globals({n: globals_[n] for n in _OF_PYTHON if n in globals_}, globals_)
    if "__class__" in function.__code__.co_freevars:
        own["super"] = super_of_view
    code = _code_of(function) or function.__code__
    if code is not function.__code__:
        own |= {**assignments.HELPERS, GLOBALS: globals_}
    cells = tuple([_cell(c) for c in function.__closure__ or ()])
    copy = FunctionType(code, own, function.__name__, function.__defaults__, cells or None)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
    copy.__module__ = function.__module__
    copy.__dict__.update(function.__dict__)
    return copy


def _cell(cell: CellType) -> CellType:
    """A cell of its own for what is NumPy's or a function of the user's; any other is shared."""
    try:
        value = cell.cell_contents
    except ValueError:
        return cell
    is_users = _is_users(value) or _is_users_module(value) or _has_methods(value)
    return CellType() if is_users or _stands_for(value) is not value else cell


@lru_cache(_KEPT)
def _names(code: CodeType) -> tuple[str, ...]:
    """The names that a piece of code mentions, with those of functions within it."""
    return tuple(dict.fromkeys(name for inner in codes(code) for name in inner.co_names))


def _globals_of(function: FunctionType) -> list[tuple[str, Any]]:
    found = function.__globals__
    return [(name, found[name]) for name in _names(function.__code__) if name in found]


def _referenced_objects(function: FunctionType) -> dict[str, Any]:
    """Return the objects that a function refers to, by name."""
    found = dict(_globals_of(function))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    for name, module in [*found.items()]:
        if _is_users_module(module):
            named = {n: getattr(module, n, None) for n in _names(function.__code__)}
            found |= {f"{name}.{n}": f for n, f in named.items() if _is_users(f)}
    return found


def _mentions(function: FunctionType) -> bool:
    """Whether a function mentions something for which the drop-in has another."""
    return any(_stands_for(value) is not value for value in _referenced_objects(function).values())


def _has_methods(value: Any) -> bool:
    """Whether a value is an object whose methods are followed: nothing else stands for it."""
    return has_methods(value, _followed.get()) and _stands_for(value) is value


def _is_followed(name: str) -> bool:
    return is_within(name, _followed.get())


def _is_users(value: Any) -> TypeGuard[FunctionType]:
    """Whether a value is a function of the user's, not of primgraph or an installed package.

    Those of modules that are to be followed count as the user's.
    """
    if not isinstance(value, FunctionType):
        return False
    name = value.__globals__.get("__name__", "")
    if _is_followed(name):
        return not _has_row(value)
    return not is_own_name(name) and not is_library(value.__code__.co_filename)


def _room(function: FunctionType) -> str:
    """Return the public module of a function of SciPy's."""
    return ".".join((function.__module__ or "").split(".")[:2])


def _has_row(function: FunctionType) -> bool:
    """Whether a function, which is no ufunc, is one of `scipy.special` with a counterpart."""
    return _room(function) == "scipy.special" and function.__name__ in rows("scipy.special")


def _is_users_module(value: Any) -> bool:
    """Whether a value is a module of the user's, or one that is to be followed."""
    if not isinstance(value, ModuleType):
        return False
    name, file = value.__name__, getattr(value, "__file__", None)
    if _is_followed(name):
        return _stands_for(value) is value
    return file is not None and not is_own_name(name) and not is_library(file)


def _stands_for(value: Any) -> Any:
    """Return the replacement of a NumPy or `math` object; other objects as they are."""
    if value is np or (isinstance(value, ModuleType) and value.__name__ in _OTHER_NUMPYS):
        return importlib.import_module("primgraph.numpy")
    if isinstance(value, ModuleType) and value.__name__ in _NUMPYS:
        return importlib.import_module(_NUMPYS[value.__name__])
    if value is math:
        return mathematics_module.mathematics
    if isinstance(value, ModuleType) and value.__name__ in _SCIPYS:
        return provider(value.__name__)
    if isinstance(value, BuiltinFunctionType):
        name = value.__name__
        if getattr(math, name, None) is value:
            return getattr(mathematics_module.mathematics, name)
    if isinstance(value, FunctionType) and _is_defined_in("scipy", value):
        room = _room(value)
        if room in _SCIPYS and (room != "scipy.special" or _has_row(value)):
            return getattr(provider(room), value.__name__, value)
    if str(type(value).__module__).startswith("scipy.stats."):
        # The methods of one whose module is followed are, other than the public ones.
        is_followed = has_methods(value, _followed.get())
        return value if is_followed else _distribution(value) or value
    if isinstance(value, np.ufunc) or _is_numpys(value):
        name = getattr(value, "__name__", "")
        drop_in = importlib.import_module("primgraph.numpy")
        return (
            getattr(drop_in, name)
            if getattr(np, name, None) is value
            else door.recording_wrapper(value)
        )
    return warning_stand_in(value)


def referenced_names(
    function: Callable[..., Any], given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a function of the user's and those that it may call mention, by name.

    The object of a method is mentioned, and so are arguments that are `given`.
    """
    inner = _inner(function)
    if not isinstance(inner, FunctionType | type):
        # An object that is called.
        function = getattr(inner, "__call__", inner)  # noqa: B004
        inner = _inner(function)
    reached = _reach(function)[0] if _is_users(inner) else []
    found = {name: value for f in reached for name, value in _referenced_objects(f).items()}
    if reached and isinstance(function, MethodType):
        found[inner.__code__.co_varnames[0]] = function.__self__
    return found | dict(given or {})


def _distribution(value: Any) -> Any:
    """Return the distribution that takes variables in the place of one of SciPy's, or None."""
    if not str(type(value).__module__).startswith("scipy.stats."):
        return None
    theirs = importlib.import_module("scipy.stats")
    here = provider("scipy.stats")
    found = [name for name in here.__all__ if getattr(theirs, name, None) is value]
    return getattr(here, found[0]) if found else None


def _is_numpys(value: Any) -> bool:
    """Whether a value is a function of NumPy's; functions of `primgraph.numpy` have its names."""
    if isinstance(value, FunctionType) and not _is_defined_in("numpy", value):
        return False
    module = getattr(value, "__module__", None)
    return callable(value) and not isinstance(value, type) and module in (
        "numpy", "numpy.linalg", "numpy.fft"
    )  # fmt: skip


def _is_defined_in(package: str, function: FunctionType) -> bool:
    """Whether the code is of a package: `functools.wraps` copies `__module__` to that of others."""
    return bool(function.__globals__.get("__name__", "").partition(".")[0] == package)
