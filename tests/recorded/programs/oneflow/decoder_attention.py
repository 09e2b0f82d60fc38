"""A decoder-only language model of hand-written attention, with accumulation and cosine warmup.

The twin is this text with torch in place of oneflow.
"""

import math

import numpy as np
import oneflow as flow
from oneflow import nn
from oneflow.nn import functional as F
from oneflow.utils.data import DataLoader, TensorDataset


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.heads = heads
        self.register_buffer("mask", flow.tril(flow.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (a.view(b, t, self.heads, c // self.heads).transpose(1, 2) for a in (q, k, v))
        att = flow.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, vocab, dim, heads, layers):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Parameter(flow.zeros(1, 8, dim))
        self.blocks = nn.ModuleList(
            [
                nn.ModuleDict(
                    {
                        "ln1": nn.LayerNorm(dim),
                        "attn": SelfAttention(dim, heads),
                        "ln2": nn.LayerNorm(dim),
                        "mlp": nn.Sequential(
                            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
                        ),
                    }
                )
                for _ in range(layers)
            ]
        )
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos[:, : idx.shape[1]]
        for block in self.blocks:
            x = x + block["attn"](block["ln1"](x))
            x = x + block["mlp"](block["ln2"](x))
        logits = self.head(x)
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def main():
    rng = np.random.default_rng(1)
    text = rng.integers(0, 7, 40)
    xs = flow.tensor(np.stack([text[i : i + 6] for i in range(0, 32, 4)]))
    ys = flow.tensor(np.stack([text[i + 1 : i + 7] for i in range(0, 32, 4)]))
    loader = DataLoader(TensorDataset(xs, ys), batch_size=2, shuffle=False)
    model = GPT(7, 4, 2, 1)
    with flow.no_grad():
        for _n, p in model.named_parameters():
            if True:
                p.copy_(flow.tensor(rng.normal(0, 0.3, p.shape), dtype=flow.float32))
    decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
    rest = [p for n, p in model.named_parameters() if p.dim() < 2]
    opt = flow.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=0.02,
        betas=(0.9, 0.95),
    )
    warm = flow.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2)
    cos = flow.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
    sched = flow.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[2])
    losses = []
    for _ in range(2):
        for i, (x, y) in enumerate(loader):
            _, loss = model(x, y)
            (loss / 2).backward()
            losses.append(loss.item())
            if (i + 1) % 2 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                opt.zero_grad(set_to_none=True)
                sched.step()
    model.eval()
    idx = flow.zeros(1, 1, dtype=flow.long)
    with flow.no_grad():
        for _ in range(5):
            nxt = model(idx)[:, -1, :].argmax(dim=-1, keepdim=True)
            idx = flow.cat((idx, nxt), dim=1)
        probs = F.softmax(model(idx)[:, -1], dim=-1)
    print(sum(p.numel() for p in model.parameters()), idx.tolist())
    print(model.blocks[0])
    return {
        "losses": losses,
        "idx": idx.numpy(),
        "probs": probs.numpy(),
        "lr": opt.param_groups[0]["lr"],
        "keys": sorted(model.state_dict())[:5],
        "tied": model.head.weight is model.tok.weight,
    }
