"""A small causal language model: attention blocks, tied weights, warm-up and cosine rates."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, CONTEXT, WIDTH = 6, 5, 4


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(CONTEXT, CONTEXT)) == 0)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (
            t.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for t in (q, k, v)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(self.mask[:length, :length], float("-inf"))
        mixed = scores.softmax(dim=-1) @ v
        return self.project(mixed.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads=2)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.0)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList([Block(WIDTH) for _ in range(2)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, index):
        x = self.tokens(index) + self.places[: index.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_optimizer(model):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.95))


def rate(step, warmup=2, total=6):
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def main():
    rng = np.random.default_rng(12)
    model = LanguageModel().double()
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)
        for p in model.parameters():
            p.add_(torch.tensor(rng.normal(0.0, 0.3, tuple(p.shape))) - p * (p.dim() > 1))
    text = torch.tensor(rng.integers(0, VOCABULARY, (4, CONTEXT + 1)))
    optimizer = make_optimizer(model)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses, rates = [], []
    for _ in range(5):
        scores = model(text[:, :-1])
        loss = F.cross_entropy(scores.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.append(scheduler.get_last_lr()[0])
        scheduler.step()
        losses.append(loss.item())
    generated = text[:1, :1]
    model.eval()
    for _ in range(4):
        with torch.inference_mode():
            scores = model(generated[:, -CONTEXT:])[:, -1]
        generated = torch.cat([generated, scores.argmax(-1, keepdim=True)], dim=1)
    return {
        "losses": np.array(losses),
        "rates": np.array(rates),
        "generated": generated.tolist(),
        "scores": scores.numpy(),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
