"""A VAE with paddle.distribution, KL annealing, and an importance-weighted bound."""

import math

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn
from paddle.distribution import Bernoulli, Independent, Normal, kl_divergence


class Encoder(nn.Layer):
    def __init__(self, d_in, d_hid, d_z):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, d_hid), nn.GELU(), nn.LayerNorm(d_hid))
        self.mu, self.logvar = nn.Linear(d_hid, d_z), nn.Linear(d_hid, d_z)

    def forward(self, x):
        h = self.body(x)
        return Normal(self.mu(h), paddle.exp(0.5 * self.logvar(h)))


class VAE(nn.Layer):
    def __init__(self, d_in=6, d_hid=5, d_z=2):
        super().__init__()
        self.encoder = Encoder(d_in, d_hid, d_z)
        self.decoder = nn.Sequential(nn.Linear(d_z, d_hid), nn.Swish(), nn.Linear(d_hid, d_in))
        self.register_buffer("zero", paddle.zeros([d_z]))
        self.register_buffer("one", paddle.ones([d_z]), persistable=False)

    @property
    def prior(self):
        return Normal(self.zero, self.one)

    def elbo(self, x, noise, beta):
        q = self.encoder(x)
        z = q.loc + q.scale * noise
        logits = self.decoder(z)
        log_p = -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(axis=-1)
        kl = kl_divergence(q, self.prior).sum(-1)
        return (log_p - beta * kl).mean(), log_p.mean(), kl.mean()

    def iwae(self, x, noise):
        q = self.encoder(x)
        z = q.loc.unsqueeze(0) + q.scale.unsqueeze(0) * noise
        likelihood = Independent(Bernoulli(F.sigmoid(self.decoder(z))), 1)
        log_w = likelihood.log_prob(x) + (self.prior.log_prob(z) - q.log_prob(z)).sum(-1)
        return (paddle.logsumexp(log_w, axis=0) - math.log(noise.shape[0])).mean()


def main():
    rng = np.random.default_rng(21)
    model = VAE()
    for p in model.parameters():
        p.set_value(rng.normal(0, 0.4, p.shape).astype("float32"))
    x = paddle.to_tensor((rng.uniform(size=(10, 6)) > 0.5).astype("float32"))
    schedule = paddle.optimizer.lr.NoamDecay(d_model=16, warmup_steps=3, learning_rate=0.1)
    opt = paddle.optimizer.Adamax(schedule, parameters=model.parameters(), epsilon=1e-7)
    rows = []
    for epoch in range(4):
        beta = min(1.0, (epoch + 1) / 3)
        noise = paddle.to_tensor(rng.normal(size=(10, 2)).astype("float32"))
        bound, log_p, kl = model.elbo(x, noise, beta)
        (-bound).backward()
        opt.step()
        opt.clear_gradients()
        schedule.step()
        rows.append([bound.item(), log_p.item(), kl.item(), opt.get_lr()])
        print(f"epoch {epoch}: elbo {float(bound):.4f} kl {float(kl):.4f}")
    model.eval()
    with paddle.no_grad():
        iw = model.iwae(x, paddle.to_tensor(rng.normal(size=(7, 10, 2)).astype("float32")))
        q = model.encoder(x[:2])
    paddle.seed(3)
    s = q.rsample([500])
    cat = paddle.distribution.Categorical(paddle.to_tensor([1.0, 2.0, 3.0]))
    beta = paddle.distribution.Beta(paddle.to_tensor([0.5]), paddle.to_tensor([2.0]))
    uni = paddle.distribution.Uniform(paddle.to_tensor([0.0]), paddle.to_tensor([3.0]))
    mvn = paddle.distribution.MultivariateNormal(
        paddle.to_tensor([0.0, 1.0]), covariance_matrix=paddle.to_tensor([[2.0, 0.5], [0.5, 1.0]])
    )
    return {
        "rows": rows,
        "iw": iw,
        "entropy": q.entropy(),
        "mean": q.mean,
        "var": q.variance,
        "close": bool((s.mean(0) - q.mean).abs().max() < 0.5),
        "shape": s.shape,
        "cat": [
            cat.entropy(),
            cat.log_prob(paddle.to_tensor([2])),
            cat.probs(paddle.to_tensor([0, 1])),
        ],
        "beta": [beta.mean, beta.log_prob(paddle.to_tensor([0.3])), beta.entropy()],
        "uni": [uni.entropy(), uni.probs(paddle.to_tensor([1.0]))],
        "mvn": mvn.log_prob(paddle.to_tensor([0.3, 0.1])),
        "state": list(model.state_dict()),
    }
