import numpy as np


def jacobian(w, x):
    """Compute slopes.

    w: float64, shape (4, 3)
    x: float64, shape (3,)
    Returns slopes: float64, shape (4, 3)
    """
    # golden_programs.py:69  y = pg.tanh(w @ x) * pg.cumsum(w @ x)
    v0 = w @ x
    v1 = np.tanh(v0)
    v2 = np.cumsum(v0, axis=0)
    # in the gradient of golden_programs.py:69
    v3 = w.T
    v4 = np.cumsum(v3, axis=1)
    v5 = v3 * (1.0 - v1 * v1) * v2 + v1 * v4
    # golden_programs.py:70  slopes = pg.Jacobian(y, x)[:]
    slopes = v5.T
    return slopes
