import numpy as np

k0 = np.eye(3)


def jacobian(w, x):
    """Compute 1 array from 2.

    w: float64, shape (4, 3)
    x: float64, shape (3,)
    Returns float64, shape (4, 3)
    """
    # golden_programs.py:69  y = pg.tanh(w @ x) * pg.cumsum(w @ x)
    v0 = w @ x
    v1 = np.tanh(v0)
    v2 = np.cumsum(v0, axis=0)
    # in the gradient of golden_programs.py:69
    v3 = w @ k0
    v4 = v3[:, :, None].transpose(1, 0, 2)
    v5 = v4.reshape(3, 4)
    v6 = np.cumsum(v5, axis=1)
    v7 = v5 * (1.0 - v1 * v1)
    v8 = v7 * v2 + v1 * v6
    # golden_programs.py:70  slopes = pg.Jacobian(y, x)[:]
    return v8.T
