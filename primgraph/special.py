"""Special functions, named as in scipy.special."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.errors import unknown_name
from primgraph.operators.elementwise import scipy_calls, special_compositions, special_functions
from primgraph.operators.elementwise.elementary import erf, erfc
from primgraph.operators.elementwise.scipy_calls import *  # noqa: F403
from primgraph.operators.elementwise.special_compositions import *  # noqa: F403
from primgraph.operators.elementwise.special_functions import *  # noqa: F403
from primgraph.operators.networks.activations import log_softmax, softmax
from primgraph.operators.reduce.statistics import logsumexp

__all__ = ["erf", "erfc", "log_softmax", "logsumexp", "softmax"]

if not TYPE_CHECKING:
    __all__ += [*special_functions.__all__, *scipy_calls.__all__, *special_compositions.__all__]

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.special", name, __all__)

    def __dir__() -> list[str]:
        return sorted(__all__)
