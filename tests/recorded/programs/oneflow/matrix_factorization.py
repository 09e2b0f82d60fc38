"""Recommendations by a factorization of ratings, with biases and weight decay by groups.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow
from oneflow import nn, optim


class Factorization(nn.Module):
    def __init__(self, users, items, rank):
        super().__init__()
        self.users = nn.Embedding(users, rank)
        self.items = nn.Embedding(items, rank)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        self.mean = nn.Parameter(flow.zeros(1))

    def forward(self, user, item):
        product = (self.users(user) * self.items(item)).sum(dim=-1)
        biases = self.user_bias(user) + self.item_bias(item)
        return product + biases.squeeze(-1) + self.mean


def make_ratings(rng, users, items, count):
    taste, quality = rng.normal(size=(users, 2)), rng.normal(size=(items, 2))
    user = rng.integers(0, users, count)
    item = rng.integers(0, items, count)
    rating = 3.0 + (taste[user] * quality[item]).sum(axis=1)
    return flow.tensor(user), flow.tensor(item), flow.tensor(rating)


def set_parameters(model, rng):
    values = {}
    for name, value in model.state_dict().items():
        values[name] = flow.tensor(rng.normal(0.0, 0.2, tuple(value.shape)))
    result = model.load_state_dict(values)
    return len(result.missing_keys) + len(result.unexpected_keys)


def make_optimizer(model):
    factors = [model.users.weight, model.items.weight]
    biases = [model.user_bias.weight, model.item_bias.weight, model.mean]
    return optim.SGD(
        [
            {"params": factors, "weight_decay": 0.02},
            {"params": biases, "lr": 0.1},
        ],
        lr=0.2,
    )


def main():
    rng = np.random.default_rng(3)
    users, items = 5, 6
    model = Factorization(users, items, rank=2).double()
    wrong_names = set_parameters(model, rng)
    user, item, rating = make_ratings(rng, users, items, 24)
    train, test = slice(0, 18), slice(18, 24)
    optimizer = make_optimizer(model)
    criterion = nn.MSELoss()
    history = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = criterion(model(user[train], item[train]), rating[train])
        loss.backward()
        optimizer.step()
        with flow.no_grad():
            held_out = criterion(model(user[test], item[test]), rating[test])
        history.append([loss.item(), held_out.item()])
    with flow.no_grad():
        everything = model(flow.arange(users).unsqueeze(1), flow.arange(items).unsqueeze(0))
        best = everything.topk(2, dim=1)
    return {
        "history": np.array(history),
        "wrong_names": wrong_names,
        "best": best.indices.numpy(),
        "scores": best.values.numpy(),
        "mean": model.mean.item(),
        "rates": [group["lr"] for group in optimizer.param_groups],
    }
