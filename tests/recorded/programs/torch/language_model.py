"""Character transformer: tied weights, warmup, causal attention, generation."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

TEXT = "the quick brown fox jumps over the lazy dog. the dog sleeps. " * 3


class Config:
    block_size, n_layer, n_head, n_embd, dropout = 12, 2, 2, 16, 0.0

    def __init__(self, vocab_size):
        self.vocab_size = vocab_size


class CausalSelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        assert c.n_embd % c.n_head == 0
        self.c_attn = nn.Linear(c.n_embd, 3 * c.n_embd, bias=False)
        self.c_proj = nn.Linear(c.n_embd, c.n_embd, bias=False)
        self.n_head, self.n_embd, self.dropout = c.n_head, c.n_embd, c.dropout
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(c.block_size, c.block_size)).view(
                1, 1, c.block_size, c.block_size
            ),
            persistent=False,
        )

    def forward(self, x, flash=True):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        if flash:
            y = F.scaled_dot_product_attention(
                q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=True
            )
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd, bias=False)
        self.attn = CausalSelfAttention(c)
        self.mlp = nn.ModuleDict(
            {
                "fc": nn.Linear(c.n_embd, 4 * c.n_embd),
                "proj": nn.Linear(4 * c.n_embd, c.n_embd),
                "act": nn.GELU(),
            }
        )

    def forward(self, x, flash=True):
        x = x + self.attn(self.ln_1(x), flash)
        m = self.mlp
        return x + m.proj(m.act(m.fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(c.vocab_size, c.n_embd),
                "wpe": nn.Embedding(c.block_size, c.n_embd),
                "drop": nn.Dropout(c.dropout),
                "h": nn.ModuleList([Block(c) for _ in range(c.n_layer)]),
                "ln_f": nn.LayerNorm(c.n_embd),
            }
        )
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            rng = np.random.default_rng(m.weight.numel())
            m.weight.data = torch.from_numpy(
                rng.normal(size=tuple(m.weight.shape)).astype("float32") * 0.1
            )
            if getattr(m, "bias", None) is not None:
                torch.nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None, flash=True):
        pos = torch.arange(0, idx.size(1), dtype=torch.long).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x, flash)
        x = self.transformer.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(
            logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
        )

    @torch.no_grad()
    def generate(self, idx, n, top_k=5):
        for _ in range(n):
            logits, _ = self(idx[:, -self.c.block_size :])
            logits = logits[:, -1, :] / 0.8
            v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
            logits[logits < v[:, [-1]]] = -float("Inf")
            idx = torch.cat((idx, logits.softmax(-1).argmax(-1, keepdim=True)), dim=1)
        return idx


def main():
    chars = sorted(set(TEXT))
    stoi = {ch: i for i, ch in enumerate(chars)}
    data = torch.tensor([stoi[ch] for ch in TEXT], dtype=torch.long)
    model = GPT(Config(len(chars)))
    decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
    rest = [p for n, p in model.named_parameters() if p.dim() < 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=3e-3,
        betas=(0.9, 0.95),
    )
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: min(1.0, (s + 1) / 4) * 0.5 * (1 + math.cos(math.pi * s / 12))
    )
    rng, losses = np.random.default_rng(0), []
    for _ in range(10):
        ix = rng.integers(0, len(data) - 13, size=4)
        x = torch.stack([data[i : i + 12] for i in ix])
        y = torch.stack([data[i + 1 : i + 13] for i in ix])
        _, loss = model(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append((loss.item(), norm.item()))
    model.eval()
    slow, _ = model(x, y, flash=False)
    fast, _ = model(x, y)
    out = model.generate(data[None, :5], 8)
    return (
        losses,
        (slow - fast).abs().max().item() < 1e-5,
        out,
        sum(p.numel() for p in model.parameters()),
        sched.get_last_lr(),
    )
