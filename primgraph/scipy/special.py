"""Special functions by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.special`. What has no
counterpart says so.
"""

from typing import Any

from primgraph.operators.lazy_loading import named_function
from primgraph.operators.variable import handles
from primgraph.scipy.stand_in import scipy_function, stand_in

__all__, _find, __dir__ = stand_in("scipy.special", globals())


# A definition tells type checkers that a module has other names, too.
def __getattr__(name: str) -> Any:
    return _find(name)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Compute `log(sum(b * exp(a)))`: `pg.logsumexp`, with the order of SciPy's arguments.

    >>> from primgraph.scipy.special import logsumexp
    >>> logsumexp(pg.tensor([0.0, 0.0]), 0, [1.0, -2.0], return_sign=True)
    (tensor(0.), tensor(-1.))
    """
    options: dict[str, Any] = {"b": b, "return_sign": return_sign}
    if handles((a, b)):
        return named_function("logsumexp")(a, axis, keepdims, **options)
    return scipy_function("scipy.special", "logsumexp")(a, axis, keepdims=keepdims, **options)
