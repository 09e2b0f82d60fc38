"""Learning-rate schedules: factors of the learning rate."""

from __future__ import annotations

import numpy as np

from primgraph.ir.frontend.signature import check_arguments
from primgraph.operators import cos, maximum, minimum, where
from primgraph.operators.variable import Variable
from primgraph.optimizer.kinds import Schedule, from_zero, positive


@check_arguments
def exponential_decay(gamma: float) -> Schedule:
    """Return the schedule `gamma**step`.

    >>> adam = pg.optimizer.Adam(0.01, schedule=pg.optimizer.exponential_decay(0.99))
    """
    from_zero("gamma", gamma)
    return lambda step: gamma**step


@check_arguments
def step_decay(every: int, gamma: float = 0.1) -> Schedule:
    """Return the schedule `gamma**floor(step / every)`.

    >>> adam = pg.optimizer.Adam(0.01, schedule=pg.optimizer.step_decay(100, 0.5))
    """
    positive("the length of a schedule", every)
    from_zero("gamma", gamma)
    return lambda step: gamma ** (step // float(every))


@check_arguments
def polynomial_decay(steps: int, end: float = 0.0, power: float = 1.0) -> Schedule:
    """Return a schedule that decays from 1 to `end` within `steps`, as `(1 - step / steps)**power`.

    >>> adam = pg.optimizer.Adam(0.01, schedule=pg.optimizer.polynomial_decay(100))
    """
    positive("the length of a schedule", steps)
    positive("the power of a schedule", power)
    from_zero("end", end)
    return lambda step: end + (1.0 - end) * (1.0 - minimum(step / steps, 1.0)) ** power


@check_arguments
def cosine_decay(steps: int, end: float = 0.0) -> Schedule:
    """Return a schedule from 1 down to `end` within `steps`, along half a cosine.

    Loshchilov and Hutter, 2017.

    >>> adam = pg.optimizer.Adam(0.01, schedule=pg.optimizer.cosine_decay(1000))
    """
    positive("the length of a schedule", steps)
    from_zero("end", end)

    def factor(step: Variable) -> Variable:
        part = minimum(step / steps, 1.0)
        return end + (1.0 - end) * 0.5 * (1.0 + cos(np.pi * part))

    return factor


@check_arguments
def warmup(steps: int, then: Schedule | None = None) -> Schedule:
    """Return a schedule that rises linearly to 1 within `steps`, and then follows `then`.

    >>> adam = pg.optimizer.Adam(0.01, schedule=pg.optimizer.warmup(100))
    """
    positive("the length of a schedule", steps)

    def factor(step: Variable) -> Variable:
        rise = minimum((step + 1.0) / steps, 1.0)
        if then is None:
            return rise
        return where(step < steps, rise, then(maximum(step - steps, 0.0)))

    return factor
