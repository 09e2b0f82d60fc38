"""A variational autoencoder with a learned prior and the KL divergence in closed form."""

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F


class Encoder(nn.Layer):
    def __init__(self, features, hidden, latent):
        super().__init__()
        self.fc = nn.Linear(features, hidden)
        self.mean = nn.Linear(hidden, latent)
        self.logvar = nn.Linear(hidden, latent)

    def forward(self, x):
        h = F.tanh(self.fc(x))
        return self.mean(h), self.logvar(h)


class Decoder(nn.Layer):
    def __init__(self, features, hidden, latent):
        super().__init__()
        self.fc1 = nn.Linear(latent, hidden)
        self.fc2 = nn.Linear(hidden, features)

    def forward(self, z):
        return self.fc2(F.softplus(self.fc1(z)))


class VAE(nn.Layer):
    def __init__(self, features=8, hidden=6, latent=2):
        super().__init__(dtype="float64")
        self.encoder = Encoder(features, hidden, latent)
        self.decoder = Decoder(features, hidden, latent)
        self.prior_mean = self.create_parameter(
            [latent], dtype="float64", default_initializer=nn.initializer.Constant(0.1)
        )

    def forward(self, x, noise):
        mean, logvar = self.encoder(x)
        z = mean + paddle.exp(logvar * 0.5) * noise
        return self.decoder(z), mean, logvar


def kl_divergence(mean, logvar, prior_mean):
    terms = logvar.exp() + (mean - prior_mean) ** 2 - 1.0 - logvar
    return 0.5 * terms.sum(axis=1).mean()


def reconstruction(logits, x):
    loss = F.binary_cross_entropy_with_logits(logits, x, reduction="none")
    return loss.sum(axis=-1).mean()


def main():
    rng = np.random.default_rng(6)
    paddle.set_default_dtype("float64")
    model = VAE()
    paddle.set_default_dtype("float32")
    for name, p in model.named_parameters():
        if name != "prior_mean":
            p.set_value(rng.normal(0.0, 0.4, tuple(p.shape)))
    x = paddle.to_tensor((rng.uniform(size=(12, 8)) > 0.6).astype("float64"))
    optimizer = paddle.optimizer.AdamW(
        learning_rate=0.02, parameters=model.parameters(), weight_decay=0.01
    )
    losses, divergences = [], []
    for _ in range(5):
        noise = paddle.to_tensor(rng.normal(size=(12, 2)))
        logits, mean, logvar = model(x, noise)
        divergence = kl_divergence(mean, logvar, model.prior_mean)
        loss = reconstruction(logits, x) + 0.5 * divergence
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
        divergences.append(divergence.item())
    model.eval()
    with paddle.no_grad():
        logits, mean, logvar = model(x[:3], paddle.zeros([3, 2], "float64"))
        drawn = F.sigmoid(model.decoder(paddle.to_tensor([[0.5, -1.0]], "float64")))
    return {
        "losses": np.array(losses),
        "divergences": np.array(divergences),
        "prior": model.prior_mean.numpy(),
        "mean": mean.numpy(),
        "drawn": drawn.numpy(),
    }
