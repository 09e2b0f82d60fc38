"""Operators: functions on variables, each named and typed as in NumPy."""

from typing import TYPE_CHECKING, Any

from primgraph.errors import unknown_name
from primgraph.operators import (
    activations,
    arithmetic,
    contraction,
    creation,
    elementary,
    indexing,
    joining,
    late,
    linalg,
    logic,
    losses,
    normalization,
    random,
    reductions,
    shaping,
    statistics,
)
from primgraph.operators.activations import *  # noqa: F403
from primgraph.operators.arithmetic import *  # noqa: F403
from primgraph.operators.contraction import *  # noqa: F403
from primgraph.operators.creation import *  # noqa: F403
from primgraph.operators.elementary import *  # noqa: F403
from primgraph.operators.indexing import *  # noqa: F403
from primgraph.operators.joining import *  # noqa: F403
from primgraph.operators.linalg import *  # noqa: F403
from primgraph.operators.logic import *  # noqa: F403
from primgraph.operators.losses import *  # noqa: F403
from primgraph.operators.normalization import *  # noqa: F403
from primgraph.operators.random import *  # noqa: F403
from primgraph.operators.reductions import *  # noqa: F403
from primgraph.operators.shaping import *  # noqa: F403
from primgraph.operators.statistics import *  # noqa: F403

if TYPE_CHECKING:
    from primgraph.operators.attention import *  # noqa: F403
    from primgraph.operators.averages import *  # noqa: F403
    from primgraph.operators.building import *  # noqa: F403
    from primgraph.operators.choosing import *  # noqa: F403
    from primgraph.operators.complexes import *  # noqa: F403
    from primgraph.operators.convolutions import *  # noqa: F403
    from primgraph.operators.differences import *  # noqa: F403
    from primgraph.operators.finding import *  # noqa: F403
    from primgraph.operators.floats import *  # noqa: F403
    from primgraph.operators.histograms import *  # noqa: F403
    from primgraph.operators.integers import *  # noqa: F403
    from primgraph.operators.lacking import *  # noqa: F403
    from primgraph.operators.manipulation import *  # noqa: F403
    from primgraph.operators.matrices import *  # noqa: F403
    from primgraph.operators.polynomials import *  # noqa: F403
    from primgraph.operators.pools import *  # noqa: F403
    from primgraph.operators.rounding import *  # noqa: F403
    from primgraph.operators.running import *  # noqa: F403
    from primgraph.operators.sorting import *  # noqa: F403

# The names in a file's list are public. Type checkers take them from the imports, as they do not
# add lists.
if not TYPE_CHECKING:
    __all__ = [
        *activations.__all__,
        *arithmetic.__all__,
        *contraction.__all__,
        *creation.__all__,
        *elementary.__all__,
        *indexing.__all__,
        *joining.__all__,
        *linalg.__all__,
        *logic.__all__,
        *losses.__all__,
        *normalization.__all__,
        *random.__all__,
        *reductions.__all__,
        *shaping.__all__,
        *statistics.__all__,
        *late.NAMES,
    ]

    def __getattr__(name: str) -> Any:
        found = late.function_named(name) if name in late.NAMES else None
        if found is None:
            raise unknown_name("primgraph.operators", name, __all__)
        return globals().setdefault(name, found)

    def __dir__() -> list[str]:
        return sorted(__all__)
