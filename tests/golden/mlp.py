import numpy as np


def power_of_each(x, y):
    """x**y by powers alone: for a single exponent of 0.5, NumPy takes the square root."""
    x, y = np.broadcast_arrays(x, y)
    return np.power(x.reshape(-1), y.flatten()).reshape(x.shape)


def train(
    x,
    target,
    w1,
    b1,
    w2,
    adam_step,
    adam_learning_rate,
    adam_w1_moment1,
    adam_w1_moment2,
    adam_b1_moment1,
    adam_b1_moment2,
    adam_w2_moment1,
    adam_w2_moment2,
):
    """Compute loss, and new values of 10 states.

    x: float64, shape (8, 3)
    target: float64, shape (8, 1)
    w1: float64, shape (3, 16)
    b1: float64, shape (16,)
    w2: float64, shape (16, 1)
    adam_step, adam_learning_rate: float64, shape ()
    adam_w1_moment1, adam_w1_moment2: float64, shape (3, 16)
    adam_b1_moment1, adam_b1_moment2: float64, shape (16,)
    adam_w2_moment1, adam_w2_moment2: float64, shape (16, 1)
    Returns
        loss, new_adam_step: float64, shape ()
        new_adam_w1_moment1, new_adam_w1_moment2, new_w1: float64, shape (3, 16)
        new_adam_b1_moment1, new_adam_b1_moment2, new_b1: float64, shape (16,)
        new_adam_w2_moment1, new_adam_w2_moment2, new_w2: float64, shape (16, 1)
    """
    # golden_programs.py:32  hidden = pg.tanh(x @ w1 + b1)
    hidden = np.tanh(x @ w1 + b1)
    # golden_programs.py:33  predicted = hidden @ w2
    predicted = hidden @ w2
    # golden_programs.py:34  loss = pg.mean((predicted - target) ** 2)
    v0 = predicted - target
    loss = np.mean(v0 * v0)
    # in the gradient of golden_programs.py:34 and golden_programs.py:33
    predicted_bar = v0 * 0.25
    w2_bar = hidden.T @ predicted_bar
    hidden_bar = predicted_bar @ w2.T
    # in the gradient of golden_programs.py:32
    v1 = hidden_bar * (1.0 - hidden * hidden)
    b1_bar = np.sum(v1, axis=0)
    w1_bar = x.T @ v1
    # golden_programs.py:35  pg.optimizer.Adam(1e-3).minimize(loss)
    new_adam_step = adam_step + 1.0
    new_adam_w1_moment1 = 0.9 * adam_w1_moment1 + 0.09999999999999998 * w1_bar
    v2 = 0.0010000000000000009 * (w1_bar * w1_bar)
    new_adam_w1_moment2 = 0.999 * adam_w1_moment2 + v2
    v3 = adam_learning_rate * np.sqrt(1.0 - power_of_each(0.999, new_adam_step))
    v4 = v3 / (1.0 - power_of_each(0.9, new_adam_step))
    new_w1 = w1 - v4 * new_adam_w1_moment1 / (np.sqrt(new_adam_w1_moment2) + 1e-08)
    new_adam_b1_moment1 = 0.9 * adam_b1_moment1 + 0.09999999999999998 * b1_bar
    v5 = 0.0010000000000000009 * (b1_bar * b1_bar)
    new_adam_b1_moment2 = 0.999 * adam_b1_moment2 + v5
    new_b1 = b1 - v4 * new_adam_b1_moment1 / (np.sqrt(new_adam_b1_moment2) + 1e-08)
    new_adam_w2_moment1 = 0.9 * adam_w2_moment1 + 0.09999999999999998 * w2_bar
    v6 = 0.0010000000000000009 * (w2_bar * w2_bar)
    new_adam_w2_moment2 = 0.999 * adam_w2_moment2 + v6
    new_w2 = w2 - v4 * new_adam_w2_moment1 / (np.sqrt(new_adam_w2_moment2) + 1e-08)
    return (
        loss,
        new_adam_step,
        new_adam_w1_moment1,
        new_adam_w1_moment2,
        new_w1,
        new_adam_b1_moment1,
        new_adam_b1_moment2,
        new_b1,
        new_adam_w2_moment1,
        new_adam_w2_moment2,
        new_w2,
    )
