"""Random arrays that are functions of integer keys: equal keys give equal numbers."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.base.array_functions import KEYS
from primgraph.errors import unknown_name
from primgraph.operators.sampling import distributions, rejection
from primgraph.operators.sampling.distributions import *  # noqa: F403
from primgraph.operators.sampling.random_arrays import bernoulli, normal, uniform
from primgraph.operators.sampling.rejection import *  # noqa: F403

__all__ = ["bernoulli", "normal", "uniform"]

if not TYPE_CHECKING:
    __all__ += [*distributions.__all__, *rejection.__all__]

    def __getattr__(name: str) -> NoReturn:
        instead = KEYS if name in ("PRNGKey", "fold_in", "key", "key_data", "wrap_key_data") else ""
        raise unknown_name("primgraph.random", name, __all__, instead)

    def __dir__() -> list[str]:
        return sorted(__all__)
