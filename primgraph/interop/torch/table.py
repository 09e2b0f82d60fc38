"""Registry of the operators of ATen: a function for each name, called with variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.compat import torch as compat
from primgraph.errors import UnsupportedError
from primgraph.ir.types import DType

Meaning: TypeAlias = "Callable[..., Any]"

# Functions with the names of torch.
names: Any = compat
F: Any = compat.nn.functional

# The functions by names of operators, with or without the name of an overload.
_TABLE: dict[str, Meaning] = {}


@final
@dataclass(frozen=True, slots=True)
class Site:
    """A node of a graph, as its function sees it: the operator, and the dtypes of results.

    `shapes` are those of results; None where sizes are symbolic. `run` runs a graph of the node.
    """

    name: str
    dtypes: tuple[DType | None, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    run: Callable[..., Any]

    @property
    def dtype(self) -> DType:
        """Dtype of the first result."""
        found = self.dtypes[0]
        assert found is not None
        return found

    def refuse(self, what: str) -> NoReturn:
        """Raise `UnsupportedError` for arguments without a meaning here."""
        raise UnsupportedError(f"from_torch: {self.name} with {what} is not supported")


def means(*names: str) -> Callable[[Meaning], Meaning]:
    """Declare a function `f(site, *args, **kwargs)` as the meaning of operators.

    Arguments are variables, numbers, dtypes of NumPy and lists of them. The function returns a
    value, or a tuple of values.
    """

    def declare(function: Meaning) -> Meaning:
        for name in names:
            assert name not in _TABLE, name
            _TABLE[name] = function
        return function

    return declare


def means_each(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Declare functions of the arguments alone, by operator."""

    def ignoring_site(function: Callable[..., Any]) -> Meaning:
        def call(site: Site, *args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call

    for name, function in functions.items():
        means(name)(ignoring_site(function))


def find_meaning(name: str) -> Meaning | None:
    """Return the function of an operator such as `aten.add.Tensor`, or None."""
    return _TABLE.get(name) or _TABLE.get(name.rpartition(".")[0])


def known_operators() -> list[str]:
    """Return the names of all operators that have a function."""
    return sorted(_TABLE)


def numpy_dtype(dtype: Any) -> DType | None:
    """Return the NumPy dtype of a dtype of torch; None if there is none."""
    name = str(dtype).removeprefix("torch.")
    try:
        return np.dtype(name)
    except TypeError:
        return None
