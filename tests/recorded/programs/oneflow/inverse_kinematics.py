"""Angles of a robot arm that reaches a point, by gradients and by Jacobians.

The twin is this text with torch in place of oneflow.
"""

import numpy as np
import oneflow as flow


class Arm:
    """Links in a plane, each turned against the one before it."""

    def __init__(self, lengths):
        self.lengths = flow.tensor(lengths, dtype=flow.float64)

    def joints(self, angles):
        total = flow.cumsum(angles, dim=0)
        x = flow.cumsum(self.lengths * flow.cos(total), dim=0)
        y = flow.cumsum(self.lengths * flow.sin(total), dim=0)
        return flow.stack([x, y], dim=1)

    def hand(self, angles):
        return self.joints(angles)[-1]


def jacobian(function, x):
    x = x.detach().requires_grad_()
    y = function(x)
    rows = [flow.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))]
    return y.detach(), flow.stack(rows)


def damped_least_squares(arm, angles, goal, steps, damping):
    errors = []
    for _ in range(steps):
        hand, j = jacobian(arm.hand, angles)
        error = goal - hand
        errors.append(error.norm().item())
        square = j @ j.T + damping * flow.eye(2, dtype=flow.float64)
        angles = angles + j.T @ flow.linalg.solve(square, error)
    return angles, errors


def gradient_descent(arm, angles, goal, steps, rate, limits):
    angles = angles.clone().requires_grad_()
    losses = []
    for _ in range(steps):
        distance = (arm.hand(angles) - goal).pow(2).sum()
        outside = flow.relu(angles.abs() - limits).pow(2).sum()
        loss = distance + 10.0 * outside
        (gradient,) = flow.autograd.grad(loss, angles)
        with flow.no_grad():
            angles -= rate * gradient
        losses.append(loss.item())
    return angles.detach(), losses


def main():
    arm = Arm([1.0, 0.8, 0.5])
    start = flow.tensor([0.3, 0.4, -0.2], dtype=flow.float64)
    goal = flow.tensor([0.9, 1.4], dtype=flow.float64)
    solved, errors = damped_least_squares(arm, start, goal, steps=5, damping=0.05)
    slow, losses = gradient_descent(arm, start, goal, steps=8, rate=0.1, limits=0.6)
    elbow = start.clone().requires_grad_()
    height = arm.joints(elbow)[:, 1].max()
    height.backward()
    return {
        "solved": solved.numpy(),
        "errors": np.array(errors),
        "slow": slow.numpy(),
        "losses": np.array(losses),
        "height": height.item(),
        "lift": elbow.grad.numpy(),
        "hand": arm.hand(solved).numpy(),
    }
