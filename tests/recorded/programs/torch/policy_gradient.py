"""REINFORCE with a baseline, and a clipped surrogate loss, with distributions."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.dropout = nn.Dropout(p=0.0)
        self.action_head = nn.Linear(16, 3)
        self.value_head = nn.Linear(16, 1)
        self.log_std = nn.Parameter(torch.zeros(1, 2))
        self.mu_head = nn.Linear(16, 2)
        self.saved_log_probs, self.rewards, self.values, self.entropies = [], [], [], []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.action_head(x), dim=1), self.value_head(x), self.mu_head(x)


def select_action(policy, state, forced):
    state = torch.from_numpy(state).float().unsqueeze(0)
    probs, v, mu = policy(state)
    m = Categorical(probs)
    action = m.sample()
    assert action.shape == (1,)
    assert action.dtype == torch.int64
    action = torch.tensor([forced])
    policy.saved_log_probs.append(m.log_prob(action))
    policy.values.append(v.squeeze(-1))
    policy.entropies.append(m.entropy())
    return action.item(), m, Normal(mu, policy.log_std.exp().expand_as(mu))


def finish_episode(policy, optimizer, gamma=0.99):
    R, policy_loss, returns = 0, [], []
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + np.finfo(np.float32).eps.item())
    for lp, R, v, e in zip(
        policy.saved_log_probs, returns, policy.values, policy.entropies, strict=False
    ):
        policy_loss.append(-lp * (R - v.detach()) + F.mse_loss(v, R.view(1)) - 0.01 * e)
    optimizer.zero_grad()
    loss = torch.cat(policy_loss).sum()
    loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    policy.values.clear()
    policy.entropies.clear()
    return loss.item()


def ppo_loss(dist, old_logp, action, adv, eps=0.2):
    logp = dist.log_prob(action).sum(-1)
    ratio = (logp - old_logp).exp()
    s1, s2 = ratio * adv, torch.clamp(ratio, 1 - eps, 1 + eps) * adv
    return -torch.min(s1, s2).mean()


def main():
    rng = np.random.default_rng(13)
    policy = Policy()
    with torch.no_grad():
        for _name, p in policy.named_parameters():
            p.set_(torch.tensor(rng.normal(0, 0.4, p.shape).astype(np.float32)))
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    losses = []
    for _ep in range(4):
        for _t in range(8):
            a, m, _n = select_action(policy, rng.normal(size=4), int(rng.integers(0, 3)))
            policy.rewards.append(float(rng.normal()) + a)
        losses.append(finish_episode(policy, optimizer))
    x = torch.tensor(rng.normal(size=(6, 4)), dtype=torch.float32)
    _probs, _v, mu = policy(x)
    dist = Normal(mu, policy.log_std.exp())
    act = torch.tensor(rng.normal(size=(6, 2)), dtype=torch.float32)
    adv = torch.linspace(-1, 1, 6)
    surrogate = ppo_loss(dist, torch.full((6,), -2.0), act, adv)
    surrogate.backward()
    return (
        losses,
        surrogate,
        policy.log_std.grad,
        m.probs,
        m.logits,
        dist.entropy().shape,
        dist.batch_shape,
        Categorical(logits=mu).entropy(),
    )
