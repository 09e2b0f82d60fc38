import numpy as np


def third(x):
    """Gradient, taken 3 times, of `y` (golden_programs.py:59) by x.

    x: float64, shape (5,)
    Returns float64, shape (5,)
    """
    # golden_programs.py:59  y = x * pg.tanh(x)
    v0 = np.tanh(x)
    # in the gradient of golden_programs.py:59
    v1 = 1.0 - v0 * v0
    v2 = v0 * v1
    v3 = v2 * -2.0
    v4 = v2 + x * (v1 * v1 + v0 * v3)
    return (v3 - v4) * 2.0
