"""Autoencoder whose decoder shares the memory of the encoder; plateaus, early stopping."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class TiedAE(nn.Module):
    def __init__(self, n_in, n_hid):
        super().__init__()
        self.encoder = nn.Linear(n_in, n_hid)
        self.decoder = nn.Linear(n_hid, n_in)
        self.decoder.weight = nn.Parameter(self.encoder.weight.t())
        self.W2 = nn.Parameter(torch.empty(n_hid, 2))
        self.b = nn.Parameter(torch.zeros(n_hid))
        nn.init.eye_(self.W2)

    def forward(self, x):
        h = torch.sigmoid(self.encoder(x))
        code = F.linear(h, self.W2.t())
        h2 = F.linear(code, self.W2, self.b).sigmoid()
        return self.decoder(h2), code


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta, self.counter = patience, delta, 0
        self.best_score, self.early_stop, self.state = None, False, None

    def __call__(self, val, model):
        if self.best_score is None or val < self.best_score - self.delta:
            self.best_score = val
            self.state = copy.deepcopy(model.state_dict())
            self.counter = 0
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience


def main():
    rng = np.random.default_rng(18)
    model = TiedAE(6, 4)
    with torch.no_grad():
        model.encoder.weight.copy_(torch.tensor(rng.normal(0, 0.4, (4, 6))))
        model.decoder.weight.copy_(model.encoder.weight.t())
        model.encoder.bias.zero_()
        model.decoder.bias.zero_()
    x = torch.tensor(rng.random((30, 6)), dtype=torch.float32)
    opt = torch.optim.SGD(
        [
            {"params": model.encoder.parameters()},
            {"params": [model.W2, model.b], "lr": 5.0},
            {"params": model.decoder.parameters(), "weight_decay": 0.01},
        ],
        lr=1.0,
        momentum=0.5,
    )
    stop = EarlyStopping()
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(
        opt, mode="min", factor=0.5, patience=0, threshold=1e-3
    )
    hist = []
    for _epoch in range(12):
        out, code = model(x[:20])
        loss = (
            F.mse_loss(out, x[:20])
            + 1e-3 * code.abs().mean()
            + 1e-4 * sum(p.abs().sum() for p in model.parameters())
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            val = F.mse_loss(model(x[20:])[0], x[20:]).item()
        sched.step(val)
        stop(val, model)
        hist.append([loss.item(), val] + [g["lr"] for g in opt.param_groups])
        if stop.early_stop:
            break
    model.load_state_dict(stop.state)
    clone = copy.deepcopy(model)
    shared = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    shared[2].weight = shared[0].weight
    copy.deepcopy(shared)
    return (
        hist,
        stop.best_score,
        [torch.equal(a, b) for a, b in zip(model.parameters(), clone.parameters(), strict=False)],
        model.decoder.weight,
        model.decoder.weight.is_contiguous(),
        sched.state_dict()["num_bad_epochs"],
        sched.get_last_lr(),
    )
