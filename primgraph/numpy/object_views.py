"""Objects of the user's as copies of functions see them: with copies of their methods.

A view has the attributes of its object, and assigns to them. `isinstance` takes it for the object.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from functools import lru_cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from primgraph.base.user_lines import is_library, is_own_name
from primgraph.ir.frontend.containers import registered
from primgraph.operators.handle import Handle
from primgraph.operators.variable import handles

# Objects of other kinds than of a class with methods.
_OTHERS = (
    BuiltinFunctionType, FunctionType, Handle, MethodType, ModuleType, np.ndarray, partial, type,
)  # fmt: skip


def has_methods(value: Any, followed: tuple[str, ...]) -> bool:
    """Return whether a value is an object of a class of the user's, or of a followed module.

    Containers of arguments and results do not count, nor classes that derive from others than these
    and `object`, and those with slots or with manners of their own in looking up attributes.
    """
    kind: Any = type(value)
    return (
        not isinstance(value, _OTHERS) and kind not in registered and _is_followed(kind, followed)
    )


def is_within(name: str, modules: tuple[str, ...]) -> bool:
    """Return whether a module is one of these, or of their folders."""
    return any(name == m or name.startswith(f"{m}.") for m in modules)


@lru_cache(1024)
def _is_followed(kind: type, followed: tuple[str, ...]) -> bool:
    return (
        kind.__module__ != "builtins"
        and _is_plain(kind)
        and all(
            c is object
            or c.__module__ in _TYPING
            or _is_users(c)
            or is_within(c.__module__, followed)
            for c in kind.__mro__
        )
    )


_TYPING = ("abc", "typing")


def _is_plain(kind: type) -> bool:
    usual: Any = object.__getattribute__
    is_usual = kind.__getattribute__ is usual
    return is_usual and kind.__dictoffset__ != 0 and not dataclasses.is_dataclass(kind)


def _is_users(kind: type) -> bool:
    if is_own_name(kind.__module__):
        return False
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return not (file and is_library(file)) and kind.__module__ not in sys.stdlib_module_names


def methods_of(kind: type, names: Set[str]) -> list[FunctionType]:
    """Return methods and properties of a class by these names, with those that they override.

    Its special methods, such as that of `@`, need not be named.
    """
    methods: list[FunctionType] = []
    special = _special_methods(kind)
    for c in kind.__mro__[:-1]:
        for name, found in vars(c).items():
            if name not in names and name not in special:
                continue
            if isinstance(found, staticmethod):
                found = found.__func__
            if isinstance(found, property):
                found = found.fget
            if _is_computed_once(found):
                found = found.func
            if isinstance(found, FunctionType):
                methods.append(found)
    return methods


def parts_of(value: Any, names: Set[str]) -> Iterator[Any]:
    """Yield the attributes of an object of these names, and what lists and tuples of them hold."""
    for name, found in vars(value).items():
        if name in names:
            yield found
            if type(found) in (list, tuple):
                yield from found


class ObjectView:
    """A view of an object: see the module."""

    def __init__(self, original: Any, copies: Mapping[int, Any], counterpart: Any = None) -> None:
        object.__setattr__(self, "_view", (original, copies, counterpart))

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return type(_original(self))
        original, copies, counterpart = object.__getattribute__(self, "_view")
        if counterpart is not None and not name.startswith("_"):
            return getattr(counterpart, name)
        found = inspect.getattr_static(type(original), name, None)
        if isinstance(found, FunctionType) and name not in vars(original):
            return MethodType(copies.get(id(found), found), self)
        if isinstance(found, property) and id(found.fget) in copies:
            return copies[id(found.fget)](self)
        if isinstance(found, staticmethod) and id(found.__func__) in copies:
            return copies[id(found.__func__)]
        if _is_computed_once(found) and id(found.func) in copies:
            return _instead(_computed_once(self, original, found, name, copies), copies)
        return _instead(getattr(original, name), copies)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_original(self), name, _unviewed(value))

    def __delattr__(self, name: str) -> None:
        delattr(_original(self), name)

    def __eq__(self, other: object) -> Any:
        return _original(self) == _unviewed(other)

    def __hash__(self) -> int:
        return hash(_original(self))

    def __repr__(self) -> str:
        return repr(_original(self))


def _is_computed_once(found: Any) -> bool:
    """Return whether an attribute of a class is a cached property, of `functools` or another's."""
    return type(found).__name__ == "cached_property"


def _computed_once(
    view: ObjectView,
    original: Any,
    found: Any,
    name: str,
    copies: Mapping[int, Any],
) -> Any:
    """Return a cached property of the object; variables of a trace are kept by the view alone."""
    own = object.__getattribute__(view, "__dict__")
    for kept in (vars(original), own):
        if name in kept:
            return kept[name]
    made = copies[id(found.func)](view)
    (own if handles((made,)) else vars(original))[name] = made
    return made


def _original(view: ObjectView) -> Any:
    return object.__getattribute__(view, "_view")[0]


def _unviewed(value: Any) -> Any:
    """Return the object of a view; others as they are."""
    return _original(value) if issubclass(type(value), ObjectView) else value


def _instead(found: Any, copies: Mapping[int, Any]) -> Any:
    """Return an attribute with views in place of objects, in lists and tuples too."""
    if type(found) in (list, tuple):
        items = [copies.get(id(item), item) for item in found]
        is_same = all(a is b for a, b in zip(items, found, strict=True))
        return found if is_same else type(found)(items)
    return copies.get(id(found), found)


def view_of_object(original: Any, copies: Mapping[int, Any], counterpart: Any = None) -> Any:
    """Return a view of an object, whose methods are in `copies` by the identity of the original.

    Public attributes are those of the counterpart, if there is one.
    """
    kind: Any = type(original)
    return _class_of_views(kind)(original, copies, counterpart)


@lru_cache(1024)
def _class_of_views(kind: type) -> type[ObjectView]:
    """Return the class of the views of objects of a class, with that class's special methods.

    It derives as the class does: Python asks the object of the derived class first in `a + b`.
    """
    if kind is object:
        return ObjectView
    found = {name: _forwarded(name) for name in _own_special_methods(kind)}
    bases = tuple([_class_of_views(c) for c in kind.__bases__])
    return cast("type[ObjectView]", type(kind.__name__, bases, found))


@lru_cache(1024)
def _special_methods(kind: type) -> frozenset[str]:
    """Return the names of the methods that Python calls for objects of a class."""
    return frozenset(name for c in kind.__mro__[:-1] for name in _own_special_methods(c))


def _own_special_methods(kind: type) -> list[str]:
    return [
        name
        for name, method in vars(kind).items()
        if name.startswith("__") and isinstance(method, FunctionType) and name not in _OF_VIEWS
    ]


# Special methods of views, and those that make, copy and delete objects.
_OF_VIEWS = frozenset((
    "__del__", "__delattr__", "__dir__", "__getattr__", "__getattribute__", "__getstate__",
    "__init__", "__init_subclass__", "__new__", "__reduce__", "__reduce_ex__", "__setattr__",
    "__setstate__", "__sizeof__", "__subclasshook__",
))  # fmt: skip


def _forwarded(name: str) -> Callable[..., Any]:
    def call(view: ObjectView, *args: Any, **kwargs: Any) -> Any:
        return getattr(view, name)(*args, **kwargs)

    return call


def super_of_view(*given: Any) -> Any:
    """Return `super(...)` in a copy of a method, which may be that of a view."""
    if not given:
        frame = sys._getframe(1)
        place = frame.f_locals
        given = place["__class__"], place[frame.f_code.co_varnames[0]]
    kind, owner = given
    if isinstance(kind, type) and issubclass(type(owner), ObjectView):
        return _SuperView(kind, owner)
    return super(kind, owner)


class _LikeType(type):
    """Class of `type_of_view`, which is called, and asked for instances, as `type` is."""

    def __call__(cls, *given: Any, **options: Any) -> Any:
        if cls is not type_of_view:
            return super().__call__(*given, **options)
        if len(given) == 1 and issubclass(type(given[0]), ObjectView):
            return type(_original(given[0]))
        return type(*given, **options)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type) if cls is type_of_view else super().__instancecheck__(value)

    def __subclasscheck__(cls, kind: Any) -> bool:
        return issubclass(kind, type) if cls is type_of_view else super().__subclasscheck__(kind)


class type_of_view(type, metaclass=_LikeType):
    """Stands for `type` in copies of functions: the class of a view is that of its object."""


class _SuperView:
    """Stands for `super()` in a method of a view; has the methods of the next class for it."""

    def __init__(self, kind: type, view: ObjectView) -> None:
        self._view = kind, view

    def __getattribute__(self, name: str) -> Any:
        kind, view = object.__getattribute__(self, "_view")
        original, copies, _ = object.__getattribute__(view, "_view")
        order = type(original).__mro__
        for c in order[order.index(kind) + 1 :]:
            if isinstance(found := vars(c).get(name), FunctionType):
                return MethodType(copies.get(id(found), found), view)
            if found is not None:
                break
        return getattr(super(kind, original), name)
