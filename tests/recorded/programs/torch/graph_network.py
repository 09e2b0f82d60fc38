"""Graph networks: GCN and GAT with index_add and scatter_reduce."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def gcn_norm(edge_index, n):
    loops = torch.arange(n).repeat(2, 1)
    edge_index = torch.cat([edge_index, loops], dim=1)
    row, col = edge_index
    deg = torch.zeros(n).scatter_add_(0, col, torch.ones(col.numel()))
    inv = deg.pow(-0.5)
    inv[inv == float("inf")] = 0
    return edge_index, inv[row] * inv[col]


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.empty(cout))

    def forward(self, x, edge_index):
        edge_index, norm = gcn_norm(edge_index, x.size(0))
        x = self.lin(x)
        out = torch.zeros_like(x)
        out.index_add_(0, edge_index[1], norm.view(-1, 1) * x[edge_index[0]])
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, cin, cout, heads):
        super().__init__()
        self.heads, self.cout = heads, cout
        self.lin = nn.Linear(cin, heads * cout, bias=False)
        self.att_src, self.att_dst = (
            nn.Parameter(torch.empty(1, heads, cout)),
            nn.Parameter(torch.empty(1, heads, cout)),
        )

    def forward(self, x, edge_index):
        src, dst = edge_index
        n = x.size(0)
        h = self.lin(x).view(-1, self.heads, self.cout)
        alpha = F.leaky_relu((h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(-1)[dst], 0.2)
        index = dst.unsqueeze(-1).expand_as(alpha)
        top = torch.full((n, self.heads), float("-inf")).scatter_reduce(
            0, index, alpha, reduce="amax", include_self=True
        )
        alpha = (alpha - top.detach().index_select(0, dst)).exp()
        total = x.new_zeros(n, self.heads).scatter_add(0, index, alpha)
        alpha = alpha / (total[dst] + 1e-16)
        out = x.new_zeros(n, self.heads, self.cout).index_add(0, dst, alpha.unsqueeze(-1) * h[src])
        return out.mean(dim=1), alpha


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(4, 8), GATConv(8, 3, 2)

    def forward(self, x, edge_index):
        x = F.elu(self.conv1(x, edge_index))
        out, alpha = self.conv2(x, edge_index)
        return F.log_softmax(out, dim=1), alpha


def main():
    rng = np.random.default_rng(10)
    n = 12
    labels = torch.from_numpy(np.arange(n) % 3)
    pairs = [
        (i, j)
        for i in range(n)
        for j in range(n)
        if i != j and (i % 3 == j % 3 or rng.random() < 0.15)
    ]
    edge_index = torch.tensor(pairs).t().contiguous()
    x = torch.from_numpy(rng.normal(size=(n, 4)).astype(np.float32)) + F.one_hot(labels, 4).float()
    net = Net()
    for p in net.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)).astype(np.float32) * 0.4)
    train = torch.zeros(n, dtype=torch.bool)
    train[:6] = True
    opt = torch.optim.Adam(net.parameters(), lr=0.05, weight_decay=5e-4)
    losses = []
    for _ in range(10):
        opt.zero_grad()
        out, alpha = net(x, edge_index)
        loss = F.nll_loss(out[train], labels[train])
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    pred = net(x, edge_index)[0].argmax(dim=-1)
    correct = int((pred[~train] == labels[~train]).sum())
    adj = torch.zeros(n, n)
    adj[edge_index[0], edge_index[1]] = 1.0
    lap = torch.diag(adj.sum(1)) - adj
    sym = (lap + lap.T) / 2
    values = torch.linalg.eigvalsh(sym)
    pooled = torch.zeros(3, 3).index_reduce_(0, labels, out.detach(), "amax", include_self=False)
    counts = torch.bincount(edge_index[1], minlength=n)
    return (
        losses,
        correct,
        alpha[:4],
        values[:4],
        pooled,
        counts,
        torch.unique(pred, return_counts=True)[1].sum(),
    )
