"""Logistic regression with momentum, and its accuracy."""

import megengine as mge
import megengine.functional as F
import numpy as np
from megengine import Parameter
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

STEPS, RATE, MOMENTUM = 8, 0.5, 0.9


def make_data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 2)).astype("float32")
    labels = (x[:, 0] - 0.5 * x[:, 1] + 0.2 > 0).astype("float32")
    return x, labels


class Classifier:
    def __init__(self):
        self.weight = Parameter(np.zeros((2, 1), "float32"))
        self.bias = Parameter(np.zeros(1, "float32"))

    def parameters(self):
        return [self.weight, self.bias]

    def __call__(self, x):
        return F.flatten(F.matmul(x, self.weight) + self.bias)


def accuracy(scores, labels):
    predicted = (scores > 0).astype("float32")
    return F.mean(F.equal(predicted, labels).astype("float32")).item()


def main():
    x, labels = (mge.tensor(a) for a in make_data())
    model = Classifier()
    gm = GradManager()
    gm.attach(model.parameters())
    optimizer = SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        with gm:
            scores = model(x)
            loss = F.nn.binary_cross_entropy(scores, labels, with_logits=True)
            gm.backward(loss)
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    probabilities = F.sigmoid(model(x))
    return {
        "losses": np.array(losses, "float32"),
        "weight": model.weight.numpy(),
        "bias": model.bias.numpy(),
        "probabilities": probabilities.numpy(),
        "accuracy": accuracy(model(x), labels),
    }


def expected():
    """The gradient of the loss is x^T (sigmoid - labels) / n; velocity = momentum * v + g."""
    x, labels = (a.astype(float) for a in make_data())
    w, b = np.zeros((2, 1)), np.zeros(1)
    vw, vb = np.zeros_like(w), np.zeros_like(b)
    losses = []

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    for _ in range(STEPS):
        z = (x @ w + b)[:, 0]
        p = sigmoid(z)
        losses.append(-(labels * np.log(p) + (1 - labels) * np.log(1 - p)).mean())
        error = (p - labels)[:, None] / len(x)
        vw, vb = MOMENTUM * vw + x.T @ error, MOMENTUM * vb + error.sum(axis=0)
        w, b = w - RATE * vw, b - RATE * vb
    z = (x @ w + b)[:, 0]
    return {
        "losses": np.array(losses, "float32"),
        "weight": w.astype("float32"),
        "bias": b.astype("float32"),
        "probabilities": sigmoid(z).astype("float32"),
        "accuracy": float(np.float32(((z > 0) == (labels > 0)).mean())),
    }
