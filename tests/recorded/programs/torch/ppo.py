"""Actor critic with PPO: generalized advantages, clipped objective, entropy bonus."""

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical, Normal


def layer_init(layer, rng, std=1.4142135623730951, bias=0.0):
    layer.weight.data = torch.tensor(
        rng.normal(size=layer.weight.shape) * std / np.sqrt(layer.in_features), dtype=torch.float32
    )
    torch.nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        rng = np.random.default_rng(0)
        self.critic = nn.Sequential(
            layer_init(nn.Linear(obs, 8), rng), nn.Tanh(), layer_init(nn.Linear(8, 1), rng, 1.0)
        )
        self.actor_mean = nn.Sequential(
            layer_init(nn.Linear(obs, 8), rng), nn.Tanh(), layer_init(nn.Linear(8, act), rng, 0.01)
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, act))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None, noise=None):
        mean = self.actor_mean(x)
        std = self.actor_logstd.expand_as(mean).exp()
        probs = Normal(mean, std)
        if action is None:
            action = (mean + std * noise).detach()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


class Env:
    def __init__(self, n, rng):
        self.rng, self.x = rng, rng.normal(size=(n, 2))

    def obs(self):
        return torch.tensor(self.x, dtype=torch.float32)

    def step(self, a):
        self.x = 0.9 * self.x + 0.3 * a.numpy()
        reward = -np.square(self.x).sum(1)
        done = np.abs(self.x).max(1) > 1.5
        self.x[done] = self.rng.normal(size=(done.sum(), 2))
        return torch.tensor(reward, dtype=torch.float32), torch.tensor(done, dtype=torch.float32)


def main():
    rng = np.random.default_rng(31)
    agent, env, T, N = Agent(2, 2), Env(3, rng), 8, 3
    opt = torch.optim.Adam(agent.parameters(), lr=3e-3, eps=1e-5)
    log = []
    next_obs, next_done = env.obs(), torch.zeros(N)
    for update in range(3):
        opt.param_groups[0]["lr"] = (1.0 - update / 3) * 3e-3
        obs, actions = torch.zeros((T, N, 2)), torch.zeros((T, N, 2))
        logprobs, rewards, dones, values = (torch.zeros((T, N)) for _ in range(4))
        for t in range(T):
            obs[t], dones[t] = next_obs, next_done
            with torch.no_grad():
                a, lp, _, v = agent.get_action_and_value(
                    next_obs, noise=torch.tensor(rng.normal(size=(N, 2)), dtype=torch.float32)
                )
                values[t] = v.flatten()
            actions[t], logprobs[t] = a, lp
            rewards[t], next_done = env.step(a)
            next_obs = env.obs()
        with torch.no_grad():
            next_value = agent.get_value(next_obs).reshape(1, -1)
            advantages, last = torch.zeros_like(rewards), 0
            for t in reversed(range(T)):
                alive = 1.0 - (next_done if t == T - 1 else dones[t + 1])
                nxt = next_value if t == T - 1 else values[t + 1]
                delta = rewards[t] + 0.99 * nxt * alive - values[t]
                advantages[t] = last = delta + 0.99 * 0.95 * alive * last
            returns = advantages + values
        flat = [
            t.reshape((-1, *t.shape[2:]))
            for t in (obs, actions, logprobs, advantages, returns, values)
        ]
        for _epoch in range(2):
            order = rng.permutation(T * N)
            for start in range(0, T * N, 12):
                mb = order[start : start + 12]
                o, a, old, adv, ret, val = (t[mb] for t in flat)
                _, new, entropy, value = agent.get_action_and_value(o, a)
                ratio = (new - old).exp()
                with torch.no_grad():
                    approx_kl = ((ratio - 1) - (new - old)).mean()
                    clipfrac = ((ratio - 1.0).abs() > 0.2).float().mean().item()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
                value = value.view(-1)
                clipped = val + torch.clamp(value - val, -0.2, 0.2)
                v_loss = 0.5 * torch.max((value - ret) ** 2, (clipped - ret) ** 2).mean()
                loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                opt.step()
        y, yhat = flat[4].numpy(), flat[5].numpy()
        log.append(
            (
                loss.item(),
                round(approx_kl.item(), 5),
                clipfrac,
                float(1 - np.var(y - yhat) / np.var(y)),
            )
        )
    discrete = Categorical(logits=torch.tensor([[0.2, -1.0, 0.5]]))
    return (
        log,
        agent.actor_logstd,
        discrete.log_prob(torch.tensor([2])),
        discrete.entropy(),
        advantages.mean(0),
    )
