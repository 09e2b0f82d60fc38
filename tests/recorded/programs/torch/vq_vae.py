"""VQ-VAE: straight-through estimator, codebook by moving averages in buffers."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class VectorQuantizerEMA(nn.Module):
    def __init__(self, num, dim, commitment, decay, eps=1e-5):
        super().__init__()
        self._dim, self._num = dim, num
        rng = np.random.default_rng(3)
        self._embedding = nn.Embedding(num, dim)
        self._embedding.weight.data = torch.from_numpy(
            rng.normal(size=(num, dim)).astype(np.float32)
        )
        self.register_buffer("_ema_cluster_size", torch.zeros(num))
        self._ema_w = nn.Parameter(self._embedding.weight.detach().clone())
        self._c, self._decay, self._eps = commitment, decay, eps

    def forward(self, inputs):
        inputs = inputs.permute(0, 2, 3, 1).contiguous()
        shape = inputs.shape
        flat = inputs.view(-1, self._dim)
        distances = (
            torch.sum(flat**2, dim=1, keepdim=True)
            + torch.sum(self._embedding.weight**2, dim=1)
            - 2 * torch.matmul(flat, self._embedding.weight.t())
        )
        idx = torch.argmin(distances, dim=1).unsqueeze(1)
        enc = torch.zeros(idx.shape[0], self._num, device=inputs.device)
        enc.scatter_(1, idx, 1)
        quantized = torch.matmul(enc, self._embedding.weight).view(shape)
        if self.training:
            self._ema_cluster_size = self._ema_cluster_size * self._decay + (
                1 - self._decay
            ) * torch.sum(enc, 0)
            n = torch.sum(self._ema_cluster_size.data)
            self._ema_cluster_size = (
                (self._ema_cluster_size + self._eps) / (n + self._num * self._eps) * n
            )
            dw = torch.matmul(enc.t(), flat)
            self._ema_w = nn.Parameter(self._ema_w * self._decay + (1 - self._decay) * dw)
            self._embedding.weight = nn.Parameter(self._ema_w / self._ema_cluster_size.unsqueeze(1))
        loss = self._c * F.mse_loss(quantized.detach(), inputs)
        quantized = inputs + (quantized - inputs).detach()
        avg = torch.mean(enc, dim=0)
        perplexity = torch.exp(-torch.sum(avg * torch.log(avg + 1e-10)))
        return loss, quantized.permute(0, 3, 1, 2).contiguous(), perplexity, enc


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 4, 2, 1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding="same")
        )
        self.vq = VectorQuantizerEMA(6, 3, 0.25, 0.9)
        self.decoder = nn.Sequential(
            nn.Conv2d(3, 8, 1),
            nn.PixelShuffle(2),
            nn.ReLU(),
            nn.Conv2d(2, 1, 3, padding=1, padding_mode="replicate"),
        )

    def forward(self, x):
        loss, quantized, perplexity, _ = self.vq(self.encoder(x))
        return loss, self.decoder(quantized), perplexity


def main():
    rng = np.random.default_rng(4)
    base = np.sin(np.linspace(0, 6, 8))
    x = torch.from_numpy(
        (base[None, :, None] * base[None, None] + rng.normal(size=(6, 8, 8)) * 0.1)[:, None].astype(
            np.float32
        )
    )
    variance = x.var().item()
    model = Model()
    for name, p in model.named_parameters():
        if not name.startswith("vq"):
            p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32) * 0.3)
    opt = torch.optim.Adam(
        [p for n, p in model.named_parameters() if not n.startswith("vq")], lr=5e-3, amsgrad=False
    )
    errors, perplexities = [], []
    model.train()
    for _ in range(8):
        opt.zero_grad()
        vq_loss, recon, perplexity = model(x)
        error = F.mse_loss(recon, x) / variance
        (error + vq_loss).backward()
        opt.step()
        errors.append(error.item())
        perplexities.append(perplexity.item())
    model.eval()
    with torch.no_grad():
        loss, recon, perplexity = model(x[:2])
    return (
        errors,
        perplexities,
        recon.mean(),
        loss,
        model.vq._ema_cluster_size,
        model.vq._embedding.weight,
        model.vq._ema_w.requires_grad,
    )
