import numpy as np


def jacobian(w, x):
    """Compute slopes.

    w: float64, shape (4, 3)
    x: float64, shape (3,)
    Returns slopes: float64, shape (4, 3)
    """
    # golden_programs.py:75  y = pg.tanh(w @ x) * pg.cumsum(w @ x)
    v0 = w @ x
    v1 = np.tanh(v0)
    v2 = np.cumsum(v0, axis=0)
    # in the gradient of golden_programs.py:75
    v3 = np.cumsum(w.T, axis=1)
    v4 = w.T * (1.0 - v1 * v1) * v2 + v1 * v3
    # golden_programs.py:76  slopes = pg.Jacobian(y, x)[:]
    slopes = v4.T
    return slopes
