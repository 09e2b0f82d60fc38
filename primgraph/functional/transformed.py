"""Functions made of functions: with their names, and as methods where they are attributes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any

from primgraph.errors import ArgumentError
from primgraph.ir.titles import generated_name


class Transformed(ABC):
    """A function made of `function`, by the transform `name`.

    It has the name, the parameters and the documentation of the function.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
        update_wrapper(self, function, updated=())
        self.name = name
        self.function = function

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function made of the other one gives."""

    @property
    def generated_name(self) -> str:
        """The name of generated code, such as `grad_energy`."""
        return f"{self.name}_{generated_name(self.function)}"

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.name} of {getattr(self.function, '__qualname__', self.function)!s}>"
