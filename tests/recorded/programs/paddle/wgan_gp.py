"""A Wasserstein GAN with a gradient penalty by paddle.grad with create_graph."""

import numpy as np
import paddle
from paddle import nn


def make_layers(widths, activation):
    layers = []
    for i in range(len(widths) - 1):
        layers.append(nn.Linear(widths[i], widths[i + 1]))
        if i < len(widths) - 2:
            layers.append(activation())
    return nn.Sequential(*layers)


class GAN(nn.Layer):
    def __init__(self, latent, hidden):
        super().__init__()
        self.generator = make_layers([latent, hidden, 2], nn.Tanh)
        self.critic = make_layers([2, hidden, hidden, 1], nn.Tanh)


def gradient_penalty(critic, real, fake, mix):
    between = mix * real + (1.0 - mix) * fake
    between.stop_gradient = False
    scores = critic(between)
    gradient = paddle.grad(
        outputs=scores,
        inputs=between,
        grad_outputs=paddle.ones_like(scores),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    norms = paddle.sqrt(paddle.sum(paddle.square(gradient), axis=1) + 1e-12)
    return paddle.mean(paddle.square(norms - 1.0))


def set_parameters(layer, rng):
    for p in layer.parameters():
        p.set_value(rng.normal(0.0, 0.5, tuple(p.shape)))


def circle(rng, count):
    angle = rng.uniform(0.0, 2 * np.pi, count)
    return paddle.to_tensor(np.stack([np.cos(angle), np.sin(angle)], axis=1))


def main():
    rng = np.random.default_rng(1)
    paddle.set_default_dtype("float64")
    model = GAN(latent=2, hidden=6)
    set_parameters(model, rng)
    opt_g = paddle.optimizer.Adam(
        learning_rate=0.01, beta1=0.5, beta2=0.9, parameters=model.generator.parameters()
    )
    opt_c = paddle.optimizer.Adam(
        learning_rate=0.01, beta1=0.5, beta2=0.9, parameters=model.critic.parameters()
    )
    distances, penalties = [], []
    for _ in range(3):
        for _ in range(2):
            real = circle(rng, 8)
            noise = paddle.to_tensor(rng.normal(size=(8, 2)))
            fake = model.generator(noise).detach()
            mix = paddle.to_tensor(rng.uniform(size=(8, 1)))
            penalty = gradient_penalty(model.critic, real, fake, mix)
            distance = model.critic(real).mean() - model.critic(fake).mean()
            loss = -distance + 10.0 * penalty
            loss.backward()
            opt_c.step()
            opt_c.clear_grad()
            distances.append(float(distance))
            penalties.append(float(penalty))
        noise = paddle.to_tensor(rng.normal(size=(8, 2)))
        loss = -model.critic(model.generator(noise)).mean()
        loss.backward()
        opt_g.step()
        opt_g.clear_grad()
        opt_c.clear_grad()
    paddle.set_default_dtype("float32")
    return {
        "distances": np.array(distances),
        "penalties": np.array(penalties),
        "loss": float(loss),
        "weight": model.generator[0].weight.numpy(),
    }
