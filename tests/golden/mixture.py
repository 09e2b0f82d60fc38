import numpy as np


def mixture(x, means, scales, logits):
    """Compute total, and its gradient by means, scales and logits.

    x: float64, shape (100, 2)
    means: float64, shape (5, 2)
    scales, logits: float64, shape (5,)
    Returns
        total: float64, shape ()
        means_bar: float64, shape (5, 2)
        scales_bar, logits_bar: float64, shape (5,)
    """
    # golden_programs.py:53  distance = pg.sum((x[:, None, :] - means) ** 2, axis=2)
    v0 = x[:, None] - means
    distance = np.sum(v0 * v0, axis=2)
    # golden_programs.py:54  weights = pg.log_softmax(logits) - 2 * pg.log(scales)
    v1 = np.max(logits)
    v2 = logits - np.where(np.abs(v1) < np.inf, v1, 0.0)
    v3 = np.exp(v2)
    v4 = np.sum(v3)
    weights = v2 - np.log(v4) - 2.0 * np.log(scales)
    # golden_programs.py:55  scores = weights - distance / (2 * scales**2)
    v5 = 2.0 * (scales * scales)
    v6 = distance / v5
    scores = weights - v6
    # golden_programs.py:56  total = pg.sum(pg.logsumexp(scores, axis=1))
    v7 = np.max(scores, axis=1)
    v8 = np.where(np.abs(v7) < np.inf, v7, 0.0)
    v9 = np.exp(scores - v8[:, None])
    v10 = np.sum(v9, axis=1)
    total = np.sum(np.log(v10) + v8)
    # in the gradient of golden_programs.py:56
    v11 = 1.0 / v10
    scores_bar = v11[:, None] * v9
    # in the gradient of golden_programs.py:55
    v12 = np.sum(scores_bar, axis=0)
    distance_bar = -(scores_bar / v5)
    v13 = np.sum(scores_bar * (v6 / v5), axis=0) * scales
    # in the gradient of golden_programs.py:54
    scales_bar = v13 * 4.0 + v12 * -2.0 / scales
    logits_bar = v12 - np.sum(v12) / v4 * v3
    # in the gradient of golden_programs.py:53
    means_bar = np.sum(distance_bar[:, :, None] * v0, axis=0) * -2.0
    return total, means_bar, scales_bar, logits_bar
