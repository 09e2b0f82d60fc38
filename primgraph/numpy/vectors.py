"""Functions of numbers as functions of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, final

import numpy as np

from primgraph.operators.variable import handles


@final
class vectorize:
    """`np.vectorize`; of variables and tensors the function is called once, on whole arrays.

    There it has to be made of functions that work element by element, and choose by `np.where`.

    >>> import primgraph.numpy as pnp
    >>> ramp = pnp.vectorize(lambda t: pnp.where(t > 0, t, 0.0))
    >>> pg.grad(lambda x: pnp.sum(ramp(x)))(np.array([-1.0, 2.0]))
    array([0., 1.])
    """

    def __init__(self, pyfunc: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.pyfunc = pyfunc
        self._numpys = np.vectorize(pyfunc, *args, **kwargs)
        update_wrapper(self, pyfunc)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if handles((*args, *kwargs.values())):
            return self.pyfunc(*args, **kwargs)
        return self._numpys(*args, **kwargs)
