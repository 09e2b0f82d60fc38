"""Random arrays that are functions of integer keys: equal keys give equal numbers."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.operators import draws, variates
from primgraph.operators.draws import *  # noqa: F403
from primgraph.operators.random import bernoulli, normal, uniform
from primgraph.operators.variates import *  # noqa: F403

__all__ = ["bernoulli", "normal", "uniform"]

if not TYPE_CHECKING:
    __all__ += [*draws.__all__, *variates.__all__]

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.random", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
