import numpy as np


def attention(q, k, v):
    """Gradient of `out` (golden_programs.py:43) by q, k and v.

    q, k, v: float64, shape (64, 16)
    Returns q_bar, k_bar, v_bar: float64, shape (64, 16)
    """
    # golden_programs.py:42  s = pg.softmax((q @ k.T) / 4.0, axis=-1)
    v0 = (q @ k.T) * 0.25
    v1 = np.max(v0, axis=1, keepdims=True)
    v2 = v0 - np.where(np.abs(v1) < np.inf, v1, 0.0)
    v3 = np.exp(v2)
    s = v3 / np.sum(v3, axis=1, keepdims=True)
    # golden_programs.py:43  out = pg.sum((s @ v) * v)
    v4 = s @ v
    # in the gradient of golden_programs.py:43
    v_bar = v4 + s.T @ v
    s_bar = v @ v.T
    # in the gradient of golden_programs.py:42
    v5 = (s_bar - np.sum(s * s_bar, axis=1, keepdims=True)) * s
    v6 = v5 * 0.25
    q_bar = v6 @ k
    k_bar = v6.T @ q
    return q_bar, k_bar, v_bar
