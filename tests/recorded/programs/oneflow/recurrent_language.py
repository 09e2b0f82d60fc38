"""A character model with a gated recurrent cell written by hand, truncated in time.

The twin is this text with torch in place of oneflow. OneFlow's RMSprop adds eps below the root: a
tiny one makes no difference.
"""

import numpy as np
import oneflow as flow
from oneflow import nn

TEXT = "hello world, hello there"


class GatedCell(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.gates = nn.Linear(inputs + hidden, 2 * hidden)
        self.candidate = nn.Linear(inputs + hidden, hidden)

    def forward(self, x, h):
        r, z = flow.sigmoid(self.gates(flow.cat([x, h], dim=-1))).chunk(2, dim=-1)
        n = flow.tanh(self.candidate(flow.cat([x, r * h], dim=-1)))
        return (1 - z) * n + z * h


class CharacterModel(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.vocabulary = vocabulary
        self.cell = GatedCell(vocabulary, hidden)
        self.head = nn.Linear(hidden, vocabulary)

    def forward(self, index, h):
        scores = []
        for column in index.unbind(dim=1):
            x = nn.functional.one_hot(column, self.vocabulary).to(h.dtype)
            h = self.cell(x, h)
            scores.append(self.head(h))
        return flow.stack(scores, dim=1), h


def segments(index, length):
    for start in range(0, index.shape[1] - 1, length):
        stop = min(start + length, index.shape[1] - 1)
        yield index[:, start:stop], index[:, start + 1 : stop + 1]


def sample(model, first, steps, temperature):
    found, h = [first], flow.zeros(1, model.cell.hidden, dtype=flow.float64)
    with flow.no_grad():
        for _ in range(steps):
            scores, h = model(flow.tensor([[found[-1]]]), h)
            probabilities = flow.softmax(scores[0, -1] / temperature, dim=0)
            found.append(int(probabilities.argmax()))
    return found, probabilities


def main():
    rng = np.random.default_rng(9)
    letters = sorted(set(TEXT))
    index = flow.tensor([[letters.index(c) for c in TEXT]])
    model = CharacterModel(len(letters), 6).double()
    with flow.no_grad():
        for p in model.parameters():
            p.copy_(flow.tensor(rng.normal(0.0, 0.3, tuple(p.shape))))
    optimizer = flow.optim.RMSprop(model.parameters(), lr=0.01, eps=1e-30)
    criterion = nn.CrossEntropyLoss(reduction="sum")
    losses = []
    for _ in range(2):
        h = flow.zeros(1, 6, dtype=flow.float64)
        for x, y in segments(index, 8):
            scores, h = model(x, h.detach())
            loss = criterion(scores.flatten(0, 1), y.flatten()) / y.numel()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    found, probabilities = sample(model, 0, steps=5, temperature=0.8)
    return {
        "losses": np.array(losses),
        "perplexity": float(np.exp(losses[-1])),
        "sample": found,
        "probabilities": probabilities.numpy(),
        "state": h.detach().numpy(),
    }
