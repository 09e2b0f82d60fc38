"""Base class of immutable objects, and dataclasses that generate their methods at first use.

`dataclasses.dataclass` compiles up to six functions for each class, half a millisecond at import;
most classes need few of them, and many classes none. The results are the same.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from functools import partial
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn, Self, final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type[Any] | None = None, /, **options: Any) -> Any:
        """Decorate a class like `dataclasses.dataclass`, with methods that are generated late."""
        return partial(_declare, **options) if cls is None else _declare(cls)


class Fixed:
    """Immutable object, which is its own copy: a graph, a kernel, a type."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        kind = self.__class__.__name__
        raise AttributeError(f"a {kind} never changes: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self


@final
class _Factory:
    """Default value of parameters whose values are made in each call."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"


_DEFAULT_FACTORY = _Factory()


def _declare(
    cls: Any,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """Declare the fields and slots of a class, and methods to be generated."""
    # Without a docstring, the standard decorator would inspect the signature.
    cls.__doc__ = cls.__doc__ or cls.__name__
    own = {name for name, value in vars(cls).items() if value is not None}
    # The standard decorator would compile two functions for a frozen class. It is told only if the
    # class is derived, as it compares the class with its bases.
    is_derived = any("__dataclass_params__" in vars(b) for b in cls.__mro__[1:])
    declare = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=frozen and is_derived, slots=slots, kw_only=kw_only
    )
    cls = declare(cls)
    params = cls.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = init, repr, eq, frozen
    if init and "__init__" not in own:
        cls.__init__ = _Late(cls, "__init__", _write_init)
    if repr and "__repr__" not in own:
        cls.__repr__ = _Late(cls, "__repr__", _write_repr)
    if eq and "__eq__" not in own:
        cls.__eq__ = _Late(cls, "__eq__", _write_eq)
    if eq and "__hash__" not in own:
        cls.__hash__ = _Late(cls, "__hash__", _write_hash) if frozen else None
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls)
        if slots:
            for name, state in (("__getstate__", _get_state), ("__setstate__", _set_state)):
                if name not in own:
                    setattr(cls, name, state)
    return cls


@final
class _Late:
    """Method of a class that takes its own place when it is first looked up."""

    def __init__(
        self, owner: type[Any], name: str, write: Callable[[type[Any]], Callable[..., Any]]
    ) -> None:
        self.owner, self.name, self.write = owner, name, write

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        function: Any = self.write(self.owner)
        function.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        setattr(self.owner, self.name, function)
        return function.__get__(instance, owner)


def _define(cls: type[Any], head: str, body: Iterable[str], **names: Any) -> Callable[..., Any]:
    """Return a function of this text, whose globals are those of the module of `cls`."""
    lines = "\n".join([f"  {line}" for line in body])
    text = f"def make({', '.join(names)}):\n def {head}:\n{lines}\n return {head.partition('(')[0]}"
    found: dict[str, Any] = {}
    module = sys.modules.get(cls.__module__)
    exec(text, {} if module is None else module.__dict__, found)
    function: Callable[..., Any] = found["make"](**names)
    return function


def _write_init(cls: type[Any]) -> Callable[..., Any]:
    names: dict[str, Any] = {"_later": _DEFAULT_FACTORY, "_set": object.__setattr__}
    fields = dataclasses.fields(cls)
    parameters, lines, is_frozen = ["self"], [], cls.__dataclass_params__.frozen
    listed = [f for f in fields if f.init and not f.kw_only]
    keywords = [f for f in fields if f.init and f.kw_only]
    for field in [*listed, *keywords]:
        if keywords and field is keywords[0]:
            parameters.append("*")
        default = f"_default_{field.name}"
        if field.default is not dataclasses.MISSING:
            names[default] = field.default
            parameters.append(f"{field.name}={default}")
        elif field.default_factory is not dataclasses.MISSING:
            parameters.append(f"{field.name}=_later")
        else:
            parameters.append(field.name)
    for field in fields:
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            made = f"_make_{field.name}()"
            value = f"{made} if {value} is _later else {value}" if field.init else made
        elif not field.init:
            is_slot = isinstance(getattr(cls, field.name, None), MemberDescriptorType)
            if field.default is dataclasses.MISSING or not is_slot:
                continue
            value = f"_default_{field.name}"
            names[value] = field.default
        slot = vars(cls).get(field.name)
        if not is_frozen:
            lines.append(f"self.{field.name} = {value}")
        elif isinstance(slot, MemberDescriptorType):
            names[f"_set_{field.name}"] = slot.__set__
            lines.append(f"_set_{field.name}(self, {value})")
        else:
            lines.append(f"_set(self, {field.name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    function = _define(cls, f"__init__({', '.join(parameters)})", lines or ["pass"], **names)
    hints = {f.name: f.type for f in fields if f.init}
    function.__annotations__ = {**hints, "return": None}
    return function


def _write_repr(cls: type[Any]) -> Callable[..., Any]:
    shown = ", ".join([f"{f.name}={{self.{f.name}!r}}" for f in dataclasses.fields(cls) if f.repr])
    line = f'return f"{{self.__class__.__qualname__}}({shown})"'
    return recursive_repr()(_define(cls, "__repr__(self)", [line]))


def _compared(cls: type[Any], owner: str) -> str:
    listed = [f"{owner}.{f.name}," for f in dataclasses.fields(cls) if f.compare]
    return f"({' '.join(listed)})"


def _write_eq(cls: type[Any]) -> Callable[..., Any]:
    lines = [
        "if other.__class__ is not self.__class__:",
        "  return NotImplemented",
        f"return {_compared(cls, 'self')} == {_compared(cls, 'other')}",
    ]
    return _define(cls, "__eq__(self, other)", lines)


def _write_hash(cls: type[Any]) -> Callable[..., Any]:
    return _define(cls, "__hash__(self)", [f"return hash({_compared(cls, 'self')})"])


def _refusals(cls: type[Any]) -> tuple[Callable[..., None], Callable[..., None]]:
    """Return `__setattr__` and `__delattr__` of a frozen class."""
    names = cls.__dataclass_fields__

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
