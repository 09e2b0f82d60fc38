"""Ratings of users by products of embeddings, with gradients that touch only chosen rows."""

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import SGD

USERS, ITEMS, RANK, STEPS, RATE = 4, 5, 2, 6, 0.5


def make_data():
    rng = np.random.default_rng(8)
    user = rng.integers(0, USERS, 10).astype("int32")
    item = rng.integers(0, ITEMS, 10).astype("int32")
    rating = rng.normal(size=10).astype("float32")
    p = rng.normal(0.0, 0.5, (USERS, RANK)).astype("float32")
    q = rng.normal(0.0, 0.5, (ITEMS, RANK)).astype("float32")
    return user, item, rating, p, q


class Factorization(M.Module):
    def __init__(self, p, q):
        super().__init__()
        self.users = M.Embedding(USERS, RANK, initial_weight=mge.Parameter(p))
        self.items = M.Embedding(ITEMS, RANK, initial_weight=mge.Parameter(q))

    def forward(self, user, item):
        return F.sum(self.users(user) * self.items(item), axis=1)


def recommend(model, count):
    scores = F.matmul(model.users.weight, model.items.weight, transpose_b=True)
    values, indices = F.topk(scores, count, descending=True)
    return scores, values, indices


def main():
    user, item, rating, p, q = make_data()
    model = Factorization(p, q)
    gm = GradManager().attach(model.parameters())
    optimizer = SGD(model.parameters(), lr=RATE)
    users, items, ratings = mge.tensor(user), mge.tensor(item), mge.tensor(rating)
    losses = []
    for _ in range(STEPS):
        with gm:
            loss = F.mean((model(users, items) - ratings) ** 2)
            gm.backward(loss)
        optimizer.step().clear_grad()
        losses.append(loss.item())
    scores, values, indices = recommend(model, 2)
    return {
        "losses": np.array(losses, "float32"),
        "scores": scores.numpy(),
        "best": values.numpy(),
        "indices": indices.numpy().tolist(),
        "users": model.users.weight.numpy(),
    }


def expected():
    user, item, rating, p, q = make_data()
    p, q = p.astype(float), q.astype(float)
    losses = []
    for _ in range(STEPS):
        error = (p[user] * q[item]).sum(axis=1) - rating
        losses.append((error**2).mean())
        seed = 2 * error[:, None] / len(error)
        dp, dq = np.zeros_like(p), np.zeros_like(q)
        np.add.at(dp, user, seed * q[item])
        np.add.at(dq, item, seed * p[user])
        p, q = p - RATE * dp, q - RATE * dq
    scores = p @ q.T
    indices = np.argsort(-scores, axis=1)[:, :2]
    return {
        "losses": np.array(losses, "float32"),
        "scores": scores.astype("float32"),
        "best": np.take_along_axis(scores, indices, axis=1).astype("float32"),
        "indices": indices.tolist(),
        "users": p.astype("float32"),
    }
