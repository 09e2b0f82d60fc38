"""Special functions, named as in scipy.special."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.operators import borrowed, combined, special
from primgraph.operators.activations import log_softmax, softmax
from primgraph.operators.borrowed import *  # noqa: F403
from primgraph.operators.combined import *  # noqa: F403
from primgraph.operators.elementary import erf, erfc
from primgraph.operators.special import *  # noqa: F403
from primgraph.operators.statistics import logsumexp

__all__ = ["erf", "erfc", "log_softmax", "logsumexp", "softmax"]

if not TYPE_CHECKING:
    __all__ += [*special.__all__, *borrowed.__all__, *combined.__all__]

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.special", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
