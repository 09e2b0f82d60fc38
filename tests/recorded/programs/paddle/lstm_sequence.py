"""Prediction of a noisy wave by an LSTM over windows, with early stopping."""

import numpy as np
import paddle
import paddle.nn as nn


class Forecaster(nn.Layer):
    def __init__(self, hidden, layers):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=layers)
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x, states=None):
        output, (h, c) = self.lstm(x, states)
        return self.head(self.dropout(output[:, -1])), (h, c)


def windows(series, length):
    count = len(series) - length
    x = np.stack([series[i : i + length] for i in range(count)])[..., None]
    return paddle.to_tensor(x.astype("float32")), paddle.to_tensor(
        series[length:, None].astype("float32")
    )


def set_parameters(layer, rng):
    state = layer.state_dict()
    values = {
        name: rng.normal(0.0, 0.3, tuple(value.shape)).astype("float32")
        for name, value in state.items()
    }
    return layer.set_state_dict(values)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited = patience, float("inf"), 0

    def __call__(self, loss):
        if loss < self.best:
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        return self.waited > self.patience


def forecast(model, x, steps):
    model.eval()
    found, states = [], None
    with paddle.no_grad():
        y, states = model(x, states)
        for _ in range(steps):
            found.append(y.numpy()[0, 0])
            y, states = model(y.unsqueeze(1), states)
    return np.array(found)


def main():
    rng = np.random.default_rng(5)
    series = np.sin(np.arange(20) * 0.5) + 0.05 * rng.normal(size=20)
    x, y = windows(series, 5)
    model = Forecaster(hidden=4, layers=2)
    missing, unexpected = set_parameters(model, rng)
    optimizer = paddle.optimizer.Adam(
        learning_rate=0.02,
        parameters=model.parameters(),
        grad_clip=nn.ClipGradByGlobalNorm(clip_norm=1.0),
    )
    criterion, stopping, losses = nn.MSELoss(), EarlyStopping(patience=2), []
    for _ in range(5):
        model.train()
        prediction, _ = model(x)
        loss = criterion(prediction, y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
        if stopping(losses[-1]):
            break
    return {
        "losses": np.array(losses, "float32"),
        "forecast": forecast(model, x[:1], 3),
        "missing": [missing, unexpected],
        "names": list(model.state_dict()),
        "gradients": len([p for p in model.parameters() if not p.stop_gradient]),
    }
