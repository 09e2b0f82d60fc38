import numpy as np


def third(x):
    """Gradient, taken 3 times, of `y` (golden_programs.py:65) by x.

    x: float64, shape (5,)
    Returns float64, shape (5,)
    """
    # golden_programs.py:65  y = x * pg.tanh(x)
    tanh_x = np.tanh(x)
    # in the gradient of golden_programs.py:65
    v0 = 1.0 - tanh_x * tanh_x
    v1 = tanh_x * v0
    v2 = v1 * -2.0
    v3 = v1 + x * (v0 * v0 + tanh_x * v2)
    return (v2 - v3) * 2.0
