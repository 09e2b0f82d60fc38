"""Operators: functions on variables, each named and typed as in NumPy."""

from typing import TYPE_CHECKING, Any

from primgraph.errors import unknown_name
from primgraph.operators import families, lazy_loading
from primgraph.operators.elementwise import arithmetic, elementary, logic
from primgraph.operators.elementwise.arithmetic import *  # noqa: F403
from primgraph.operators.elementwise.elementary import *  # noqa: F403
from primgraph.operators.elementwise.logic import *  # noqa: F403
from primgraph.operators.index import indexing, scatter
from primgraph.operators.index.indexing import *  # noqa: F403
from primgraph.operators.index.scatter import *  # noqa: F403
from primgraph.operators.linear_algebra import contraction, products
from primgraph.operators.linear_algebra.contraction import *  # noqa: F403
from primgraph.operators.linear_algebra.products import *  # noqa: F403
from primgraph.operators.reduce import reductions, statistics
from primgraph.operators.reduce.reductions import *  # noqa: F403
from primgraph.operators.reduce.statistics import *  # noqa: F403
from primgraph.operators.shape import creation, joining, shaping
from primgraph.operators.shape.creation import *  # noqa: F403
from primgraph.operators.shape.joining import *  # noqa: F403
from primgraph.operators.shape.shaping import *  # noqa: F403

if TYPE_CHECKING:
    from primgraph.operators.elementwise.complex_numbers import *  # noqa: F403
    from primgraph.operators.elementwise.floats import *  # noqa: F403
    from primgraph.operators.elementwise.integers import *  # noqa: F403
    from primgraph.operators.elementwise.rounding import *  # noqa: F403
    from primgraph.operators.elementwise.selection import *  # noqa: F403
    from primgraph.operators.index.histograms import *  # noqa: F403
    from primgraph.operators.index.positions import *  # noqa: F403
    from primgraph.operators.index.sets import *  # noqa: F403
    from primgraph.operators.index.sorting import *  # noqa: F403
    from primgraph.operators.linear_algebra.matrices import *  # noqa: F403
    from primgraph.operators.linear_algebra.polynomials import *  # noqa: F403
    from primgraph.operators.networks.activations import *  # noqa: F403
    from primgraph.operators.networks.attention import *  # noqa: F403
    from primgraph.operators.networks.losses import *  # noqa: F403
    from primgraph.operators.networks.normalization import *  # noqa: F403
    from primgraph.operators.reduce.averages import *  # noqa: F403
    from primgraph.operators.reduce.cumulative import *  # noqa: F403
    from primgraph.operators.reduce.differences import *  # noqa: F403
    from primgraph.operators.reduce.nan_quantiles import *  # noqa: F403
    from primgraph.operators.sampling.random_arrays import *  # noqa: F403
    from primgraph.operators.shape.manipulation import *  # noqa: F403
    from primgraph.operators.shape.matrix_building import *  # noqa: F403
    from primgraph.operators.signal.convolutions import *  # noqa: F403
    from primgraph.operators.signal.pools import *  # noqa: F403

# The names in a file's list are public. Type checkers take them from the imports, as they do not
# add lists.
if not TYPE_CHECKING:
    __all__ = [
        *arithmetic.__all__,
        *contraction.__all__,
        *creation.__all__,
        *elementary.__all__,
        *indexing.__all__,
        *joining.__all__,
        *products.__all__,
        *logic.__all__,
        *reductions.__all__,
        *scatter.__all__,
        *shaping.__all__,
        *statistics.__all__,
        *families.NAMES,
    ]

    def __getattr__(name: str) -> Any:
        found = lazy_loading.function_named(name) if name in families.NAMES else None
        if found is None:
            raise unknown_name("primgraph.operators", name, __all__)
        return globals().setdefault(name, found)

    def __dir__() -> list[str]:
        return sorted(__all__)
