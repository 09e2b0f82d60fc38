"""Base class of transformed functions, which keep the names of the originals and work as
methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import (
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from primgraph.errors import ArgumentError
from primgraph.ir.frontend.result_names import generated_name
from primgraph.operators.handle import Handle

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
Out = TypeVar("Out")
# Type variables: arguments of a derivative, auxiliary results, and arrays.
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Aux = TypeVar("Aux")
S = TypeVar("S", bound=np.generic)
H = TypeVar("H", bound=Handle)
First: TypeAlias = Literal[0]
Second: TypeAlias = Literal[1]
Two: TypeAlias = tuple[Literal[0], Literal[1]]
Three: TypeAlias = tuple[Literal[0], Literal[1], Literal[2]]
Floats: TypeAlias = "NDArray[np.float64]"
Array: TypeAlias = "NDArray[Any] | float"


class Transformed(ABC, Generic[P, R]):
    """Function made from `function` by the transform `name`, with arguments `P` and result `R`.

    It has the name, the parameters and the documentation of the function.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError(f"{name} takes a function, not {type(function).__name__}")
        update_wrapper(self, function, updated=())
        self.name = name
        self.function = function

    @abstractmethod
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the transformed function."""

    @property
    def generated_name(self) -> str:
        """Name of generated code, such as `grad_energy`."""
        return f"{self.name}_{generated_name(self.function)}"

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(
        self: Transformed[Concatenate[Out, Q], R], instance: Out, owner: type[Any] | None = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.description}>"

    @property
    def description(self) -> str:
        """The transformations and the function, such as `grad of energy`."""
        return f"{self.name} of {describe_function(self.function)}"


def describe_function(function: Callable[..., Any]) -> str:
    """Describe a function, and the transformations of one that is transformed."""
    if isinstance(function, Transformed):
        return function.description
    return str(getattr(function, "__qualname__", function))
