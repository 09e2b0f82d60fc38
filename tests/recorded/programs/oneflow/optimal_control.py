"""Torques that swing a pendulum up, by gradients through the simulation.

The twin is this text with torch in place of oneflow.
"""

import math

import numpy as np
import oneflow as flow
import oneflow.nn as nn


class Pendulum:
    def __init__(self, step, friction):
        self.step, self.friction = step, friction

    def advance(self, state, torque):
        angle, speed = state
        acceleration = -9.81 * flow.sin(angle) - self.friction * speed + torque
        speed = speed + self.step * acceleration
        return angle + self.step * speed, speed

    def simulate(self, state, torques):
        states = [flow.stack(list(state))]
        for torque in torques:
            state = self.advance(state, torque)
            states.append(flow.stack(list(state)))
        return flow.stack(states)


class Policy(nn.Module):
    """Torques by a small network of the state."""

    def __init__(self, hidden):
        super().__init__()
        self.inner = nn.Linear(3, hidden)
        self.outer = nn.Linear(hidden, 1)

    def forward(self, angle, speed):
        features = flow.stack([flow.cos(angle), flow.sin(angle), speed])
        return 5.0 * flow.tanh(self.outer(flow.tanh(self.inner(features))))[0]


def cost(states, torques):
    angle, speed = states[-1, 0], states[-1, 1]
    return (1 + flow.cos(angle)) * 10 + 0.1 * speed**2 + 0.01 * torques.pow(2).mean()


def start():
    return flow.tensor(0.1, dtype=flow.float64), flow.tensor(0.0, dtype=flow.float64)


def open_loop(pendulum, steps, iterations):
    torques = flow.full((steps,), 0.5, dtype=flow.float64, requires_grad=True)
    optimizer = flow.optim.Adam([torques], lr=0.3)
    costs = []
    for _ in range(iterations):
        optimizer.zero_grad()
        value = cost(pendulum.simulate(start(), torques), torques)
        value.backward()
        optimizer.step()
        costs.append(value.item())
    return torques.detach(), costs


def closed_loop(pendulum, policy, steps, iterations):
    optimizer = flow.optim.SGD(policy.parameters(), lr=0.01)
    costs = []
    for _ in range(iterations):
        state, torques = start(), []
        for _ in range(steps):
            torques.append(policy(*state))
            state = pendulum.advance(state, torques[-1])
        value = cost(flow.stack(list(state)).unsqueeze(0), flow.stack(torques))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        costs.append(value.item())
    return costs


def main():
    rng = np.random.default_rng(5)
    pendulum = Pendulum(step=0.05, friction=0.1)
    torques, costs = open_loop(pendulum, steps=12, iterations=5)
    policy = Policy(4).double()
    for p in policy.parameters():
        p.data.copy_(flow.tensor(rng.normal(0.0, 0.5, tuple(p.shape))))
    learned = closed_loop(pendulum, policy, steps=8, iterations=3)
    return {
        "costs": np.array(costs),
        "torques": torques.numpy(),
        "learned": np.array(learned),
        "bias": policy.outer.bias.item(),
        "upright": math.pi,
    }
