"""A multilayer perceptron on two spirals, with momentum and a confusion matrix.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import nn


class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.out(x)


def spirals(count, rng):
    t = np.linspace(0.5, 2.0, count)
    points, labels = [], []
    for k in range(2):
        angle = 2.5 * t + k * np.pi
        points.append(np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1))
        labels += [k] * count
    points = np.concatenate(points) + 0.02 * rng.normal(size=(2 * count, 2))
    order = rng.permutation(2 * count)
    return flow.tensor(points[order]), flow.tensor(np.array(labels)[order])


def initialize(model, rng):
    with flow.no_grad():
        for parameter in model.parameters():
            value = rng.normal(0.0, 0.5, tuple(parameter.shape))
            parameter.copy_(flow.tensor(value))


def confusion(predicted, labels, classes):
    matrix = np.zeros((classes, classes), int)
    for p, y in zip(predicted.tolist(), labels.tolist(), strict=True):
        matrix[y, p] += 1
    return matrix


def train(model, x, y, epochs, batch):
    criterion = nn.CrossEntropyLoss()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(epochs):
        for start in range(0, len(x), batch):
            scores = model(x[start : start + batch])
            loss = criterion(scores, y[start : start + batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def main():
    rng = np.random.default_rng(0)
    x, y = spirals(10, rng)
    model = MLP(6).double()
    initialize(model, rng)
    losses = train(model, x, y, epochs=4, batch=10)
    model.eval()
    with flow.no_grad():
        scores = model(x)
    predicted = scores.argmax(dim=1)
    return {
        "losses": np.array(losses),
        "scores": scores[:3].numpy(),
        "confusion": confusion(predicted, y, 2),
        "accuracy": (predicted == y).double().mean().item(),
    }
