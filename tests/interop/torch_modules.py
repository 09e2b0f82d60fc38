"""Modules of torch that users write, with their arguments: from perceptrons to transformers."""

import torch
from torch import nn
from torch.nn import functional as F


def number(*shape):
    return torch.randn(shape, dtype=torch.float64)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, stride=2, groups=2)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        h = F.max_pool2d(torch.tanh(self.norm(self.first(x))), 2)
        h = F.avg_pool2d(F.gelu(self.second(h)), 1)
        return self.last(F.adaptive_avg_pool2d(h, 1).flatten(1))


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell = cell(3, 4)
        self.readout = nn.Linear(4, 1)

    def forward(self, xs):
        state = None
        for x in xs.unbind(1):
            state = self.cell(x, state)
        return self.readout(state[0] if isinstance(state, tuple) else state)


class Attention(nn.Module):
    def __init__(self, causal=False):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(4, 4) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        q, k, v = (
            f(x).unflatten(-1, (2, 2)).transpose(1, 2) for f in (self.query, self.key, self.value)
        )
        h = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return h.transpose(1, 2).flatten(2)


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
        self.head = nn.Linear(4, 7)

    def forward(self, index, scale):
        h = self.layer(self.words(index) * scale)
        return F.cross_entropy(self.head(h).flatten(0, 1), index.flatten())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 2, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2, 2, 2, stride=2)
        self.last = nn.Conv2d(3, 1, 3, padding=1, padding_mode="reflect")
        self.norm = nn.GroupNorm(1, 2)

    def forward(self, x):
        h = F.silu(self.norm(self.down(x)))
        h = F.interpolate(self.up(h), scale_factor=0.5, mode="bilinear", align_corners=False)
        h = F.interpolate(h, size=x.shape[-2:], mode="nearest")
        return torch.sigmoid(self.last(torch.cat([x, h], 1)))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(5, 4), nn.Linear(2, 5)

    def forward(self, x, noise):
        mean, log_var = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.exp(0.5 * log_var) * noise
        likelihood = F.binary_cross_entropy_with_logits(self.decoder(z), torch.sigmoid(x))
        divergence = -0.5 * torch.mean(1 + log_var - mean**2 - log_var.exp())
        return likelihood + divergence


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 4))
            for _ in range(2)
        ])  # fmt: skip

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return {"features": x, "norm": torch.linalg.vector_norm(x, dim=-1)}


class GraphConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2, bias=False)
        self.register_buffer("edges", torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]]))
        self.register_buffer("weights", number(5).abs() + 0.5)

    def forward(self, x):
        source, target = self.edges
        h = self.linear(x)
        messages = h[source] * self.weights[:, None]
        degree = torch.zeros(x.shape[0], dtype=x.dtype).scatter_add(0, target, self.weights)
        return torch.zeros_like(h).index_add(0, target, messages) / degree.sqrt()[:, None]


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.means, self.scales = nn.Parameter(number(3, 2)), nn.Parameter(number(3, 2) * 0.1)
        self.logits = nn.Parameter(number(3))

    def forward(self, x):
        z = (x[:, None] - self.means) * torch.exp(-self.scales)
        log_p = -0.5 * (z**2).sum(-1) - self.scales.sum(-1) + self.logits.log_softmax(0)
        return -torch.logsumexp(log_p, -1).mean()


class GaussianProcess(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(number())

    def forward(self, x, y):
        square = ((x[:, None] - x) ** 2).sum(-1)
        kernel = torch.exp(-square * self.log_scale.exp()) + torch.eye(len(x), dtype=x.dtype)
        factor = torch.linalg.cholesky(kernel)
        half = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        return 0.5 * (half**2).sum() + factor.diagonal().log().sum()


class Oscillator(nn.Module):
    """Steps of the implicit midpoint rule, with a matrix and its inverse."""

    def __init__(self):
        super().__init__()
        self.stiffness = nn.Parameter(number(2, 2))

    def forward(self, state):
        eye = torch.eye(2, dtype=state.dtype)
        skew = self.stiffness - self.stiffness.T
        step = torch.linalg.solve(eye - 0.05 * skew, eye + 0.05 * skew)
        for _ in range(3):
            state = state @ step.T
        return state, torch.linalg.matrix_exp(skew), torch.linalg.det(eye + skew @ skew.T)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        test = x.sum() > 0
        if torch.compiler.is_exporting():
            return torch.cond(
                test, lambda x: self.linear(x).sin(), lambda x: self.linear(x) * 2, (x,)
            )
        return self.linear(x).sin() if test else self.linear(x) * 2


def mlp():
    return nn.Sequential(
        nn.Linear(3, 8), nn.Softplus(), nn.Dropout(0.5), nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2)
    )


def losses(x, y):
    """Losses of regression and classification."""
    positive = F.softplus(x)
    return (
        F.mse_loss(x, y) + F.smooth_l1_loss(x, y, beta=0.5) + F.huber_loss(x, y, delta=0.3)
        + F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean")
        + F.poisson_nll_loss(x, y.exp()) + F.l1_loss(x, positive)
        + F.cosine_embedding_loss(x, y, torch.ones(len(x), dtype=x.dtype))
        + F.triplet_margin_loss(x, y, x.flip(0)) + F.soft_margin_loss(x, torch.sign(y.detach()))
    )  # fmt: skip


def sequence(x):
    """Parts, orders and running sums of sequences."""
    values, order = x.sort(dim=-1)
    best = x.topk(2, dim=-1).values
    rolled = torch.roll(x, 1, dims=-1)[..., 1:]
    windows = x.unfold(-1, 3, 2).mean(-1)
    picked = torch.gather(x, -1, order[..., :2])
    masked = x.masked_fill(x > 0.5, 0.25).cumsum(-1)
    return torch.cat([values, best, rolled, windows, picked, masked, x.var(-1, keepdim=True)], -1)


def special(x):
    """Functions of single elements."""
    p = torch.sigmoid(x)
    return (
        torch.lgamma(p + 1) + torch.erf(x) + torch.special.i0e(x) + torch.digamma(p + 0.5)
        + torch.atan2(x, p) + torch.logaddexp(x, p) + torch.special.log_ndtr(x) + torch.logit(p)
        + torch.where(x > 0, x**3, x.exp()) + torch.clamp(x, -0.5, 0.5) + F.mish(x) + F.selu(x)
    )  # fmt: skip


# By name: the module or function, and its arguments.
MODULES = {
    "mlp": lambda: (mlp(), number(5, 3)),
    "conv_net": lambda: (ConvNet(), number(2, 2, 8, 8)),
    "lstm_cell": lambda: (Recurrent(nn.LSTMCell), number(2, 3, 3)),
    "gru_cell": lambda: (Recurrent(nn.GRUCell), number(2, 3, 3)),
    "lstm": lambda: (nn.LSTM(3, 4, batch_first=True), number(2, 3, 3)),
    "attention": lambda: (Attention(), number(2, 3, 4)),
    "causal_attention": lambda: (Attention(causal=True), number(2, 3, 4)),
    "multihead": lambda: (nn.MultiheadAttention(4, 2), *[number(3, 2, 4) for _ in range(3)]),
    "language_model": lambda: (Language(), torch.tensor([[1, 3, 2], [0, 6, 5]]), number(4)),
    "u_net": lambda: (UNet(), number(1, 1, 8, 8)),
    "autoencoder": lambda: (Autoencoder(), number(3, 5), number(3, 2)),
    "residual": lambda: (Residual(), number(3, 4)),
    "graph_conv": lambda: (GraphConv(), number(4, 3)),
    "mixture": lambda: (Mixture(), number(5, 2)),
    "gaussian_process": lambda: (GaussianProcess(), number(4, 2), number(4)),
    "oscillator": lambda: (Oscillator(), number(3, 2)),
    "branch": lambda: (Branch(), number(2, 3)),
    "bilinear": lambda: (nn.Bilinear(3, 2, 2), number(4, 3), number(4, 2)),
    "conv1d": lambda: (nn.Sequential(nn.Conv1d(2, 4, 3, dilation=2), nn.GLU(1)), number(2, 2, 9)),
    "losses": lambda: (losses, number(3, 4), number(3, 4)),
    "sequence": lambda: (sequence, number(2, 7)),
    "special": lambda: (special, number(4)),
}
