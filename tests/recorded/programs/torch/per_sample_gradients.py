"""Differentially private training: gradients per sample by vmap, clipped and averaged."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 3, 3)
        self.fc = nn.Linear(12, 2)

    def forward(self, x):
        x = torch.tanh(self.conv(x))
        return self.fc(x.flatten(1))


def compute_loss(model, parameters, buffers, sample, target):
    batch = sample.unsqueeze(0)
    scores = functional_call(model, (parameters, buffers), (batch,))
    return F.cross_entropy(scores, target.unsqueeze(0))


def clip_factors(gradients, limit):
    squares = [g.flatten(1).pow(2).sum(1) for g in gradients.values()]
    norms = torch.stack(squares).sum(0).sqrt()
    return (limit / (norms + 1e-6)).clamp(max=1.0), norms


def private_gradients(gradients, limit, noise_scale, rng):
    factors, norms = clip_factors(gradients, limit)
    result = {}
    for name, g in gradients.items():
        clipped = torch.einsum("b,b...->...", factors, g) / len(factors)
        noise = torch.tensor(rng.normal(0.0, noise_scale, tuple(clipped.shape)))
        result[name] = clipped + noise
    return result, norms


def main():
    rng = np.random.default_rng(9)
    model = Net().double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.normal(0.0, 0.3, tuple(p.shape))))
    x = torch.tensor(rng.normal(size=(6, 1, 6)))
    y = torch.tensor([0, 1, 1, 0, 1, 0])
    parameters = {k: v.detach() for k, v in model.named_parameters()}
    buffers = {k: v.detach() for k, v in model.named_buffers()}

    def loss(parameters, buffers, sample, target):
        return compute_loss(model, parameters, buffers, sample, target)

    per_sample = vmap(grad(loss), in_dims=(None, None, 0, 0))
    gradients = per_sample(parameters, buffers, x, y)
    one_by_one = [grad(loss)(parameters, buffers, x[i], y[i]) for i in range(len(x))]
    agree = all(
        torch.allclose(gradients[k], torch.stack([g[k] for g in one_by_one])) for k in gradients
    )

    history = []
    for _ in range(3):
        both = vmap(grad_and_value(loss), in_dims=(None, None, 0, 0))
        gradients, losses = both(parameters, buffers, x, y)
        update, norms = private_gradients(gradients, 0.5, 0.01, rng)
        parameters = {k: p - 0.5 * update[k] for k, p in parameters.items()}
        history.append([losses.mean().item(), norms.max().item()])
    fisher = sum(g.flatten(1).pow(2).mean(0).sum() for g in gradients.values())
    return {
        "agree": agree,
        "history": np.array(history),
        "bias": gradients["fc.bias"].numpy(),
        "fisher": fisher.item(),
        "weights": parameters["conv.weight"].numpy(),
    }
