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
    # golden_programs.py:47  distance = pg.sum((x[:, None, :] - means) ** 2, axis=2)
    v0 = x[:, None] - means
    distance = np.sum(v0 * v0, axis=2)
    # golden_programs.py:48  weights = pg.log_softmax(logits) - 2 * pg.log(scales)
    v1 = np.max(logits)
    v2 = np.where(np.abs(v1) < np.inf, v1, 0.0)
    v3 = logits - v2
    v4 = np.exp(v3)
    v5 = np.sum(v4)
    # golden_programs.py:49  scores = weights - distance / (2 * scales**2)
    v6 = 2.0 * (scales * scales)
    v7 = distance / v6
    # golden_programs.py:48  weights = pg.log_softmax(logits) - 2 * pg.log(scales)
    v8 = v3 - np.log(v5) - 2.0 * np.log(scales)
    # golden_programs.py:49  scores = weights - distance / (2 * scales**2)
    scores = v8 - v7
    # golden_programs.py:50  total = pg.sum(pg.logsumexp(scores, axis=1))
    v9 = np.max(scores, axis=1)
    v10 = np.where(np.abs(v9) < np.inf, v9, 0.0)
    v11 = np.exp(scores - v10[:, None])
    v12 = np.sum(v11, axis=1)
    total = np.sum(np.log(v12) + v10)
    # in the gradient of golden_programs.py:50
    v13 = 1.0 / v12
    scores_bar = v13[:, None] * v11
    # in the gradient of golden_programs.py:49
    v14 = np.sum(scores_bar, axis=0)
    distance_bar = -(scores_bar / v6)
    v15 = np.sum(scores_bar * (v7 / v6), axis=0)
    v16 = v15 * 2.0 * (scales * 2.0)
    # in the gradient of golden_programs.py:48
    scales_bar = v16 + v14 * -2.0 / scales
    v17 = np.sum(-v14)
    logits_bar = v14 + v17 / v5 * v4
    # in the gradient of golden_programs.py:47
    v18 = -(distance_bar[:, :, None] * (v0 * 2.0))
    means_bar = np.sum(v18, axis=0)
    return total, means_bar, scales_bar, logits_bar
