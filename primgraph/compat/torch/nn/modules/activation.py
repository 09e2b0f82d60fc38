"""Activation layers, and attention with several heads."""

from __future__ import annotations

from typing import Any

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.functional.attention import multi_head_attention_forward
from primgraph.compat.torch.nn.init import constant_, xavier_normal_, xavier_uniform_
from primgraph.compat.torch.nn.layer_tables import FunctionLayer, define_layers
from primgraph.compat.torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter
from primgraph.errors import ArgumentError, CheckError

_ROWS = """
ReLU(inplace=False): relu(input) | inplace?
Return `input` where it is positive, 0 elsewhere.
>>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
tensor([0., 2.])

ReLU6(inplace=False): relu6(input) | inplace?
Limit `input` to the interval from 0 to 6.
>>> torch.nn.ReLU6()(torch.tensor([-1.0, 7.0]))
tensor([0., 6.])

LeakyReLU(negative_slope=0.01, inplace=False): leaky_relu(input) | negative_slope inplace?
Return `input` where it is positive, `negative_slope * input` elsewhere.
>>> torch.nn.LeakyReLU(0.5)(torch.tensor([-2.0, 2.0]))
tensor([-1.,  2.])

RReLU(lower=1.0 / 8, upper=1.0 / 3, inplace=False): rrelu(input) | lower upper inplace?
Return `LeakyReLU` with random slopes in training, and their mean outside.
>>> torch.nn.RReLU(0.25, 0.75).eval()(torch.tensor([-2.0, 2.0]))
tensor([-1.,  2.])

ELU(alpha=1.0, inplace=False): elu(input) | alpha inplace?
Return `input` where it is positive, `alpha * (exp(input) - 1)` elsewhere.
>>> torch.nn.ELU()(torch.tensor([0.0, 2.0]))
tensor([0., 2.])

CELU(alpha=1.0, inplace=False): celu(input) | alpha inplace?
Return `input` where it is positive, `alpha * (exp(input / alpha) - 1)` elsewhere.
>>> torch.nn.CELU()(torch.tensor([0.0, 2.0]))
tensor([0., 2.])

SELU(inplace=False): selu(input) | inplace?
Return `ELU` with the slopes that keep mean 0 and variance 1.
>>> torch.nn.SELU()(torch.tensor([0.0]))
tensor([0.])

GELU(approximate="none"): gelu(input) | approximate
Compute `input` times its normal distribution function.
>>> torch.nn.GELU()(torch.tensor([0.0]))
tensor([0.])

SiLU(inplace=False): silu(input) | inplace?
Compute `input * sigmoid(input)`.
>>> torch.nn.SiLU()(torch.tensor([0.0]))
tensor([0.])

Mish(inplace=False): mish(input) | inplace?
Compute `input * tanh(softplus(input))`.
>>> torch.nn.Mish()(torch.tensor([0.0]))
tensor([0.])

Softplus(beta=1.0, threshold=20.0): softplus(input) | beta threshold
Compute `log(1 + exp(beta * input)) / beta`.
>>> torch.nn.Softplus()(torch.tensor([0.0]))
tensor([0.6931])

Softsign(): softsign(input)
Compute `input / (1 + abs(input))`.
>>> torch.nn.Softsign()(torch.tensor([3.0]))
tensor([0.7500])

Tanh(): tanh(input)
Compute the hyperbolic tangent.
>>> torch.nn.Tanh()(torch.tensor([0.0]))
tensor([0.])

Sigmoid(): sigmoid(input)
Compute `1 / (1 + exp(-input))`.
>>> torch.nn.Sigmoid()(torch.tensor([0.0]))
tensor([0.5000])

LogSigmoid(): logsigmoid(input)
Compute the logarithm of `Sigmoid`.
>>> torch.nn.LogSigmoid()(torch.tensor([0.0]))
tensor([-0.6931])

Tanhshrink(): tanhshrink(input)
Compute `input - tanh(input)`.
>>> torch.nn.Tanhshrink()(torch.tensor([0.0]))
tensor([0.])

Hardtanh(min_val=-1.0, max_val=1.0, inplace=False): hardtanh(input) | min_val max_val inplace?
Limit `input` to an interval.
>>> torch.nn.Hardtanh()(torch.tensor([-3.0, 3.0]))
tensor([-1.,  1.])

Hardsigmoid(inplace=False): hardsigmoid(input)
Compute `relu6(input + 3) / 6`.
>>> torch.nn.Hardsigmoid()(torch.tensor([0.0]))
tensor([0.5000])

Hardswish(inplace=False): hardswish(input)
Compute `input * hardsigmoid(input)`.
>>> torch.nn.Hardswish()(torch.tensor([3.0]))
tensor([3.])

Hardshrink(lambd=0.5): hardshrink(input) | =lambd
Return `input` where its absolute value is above `lambd`, 0 elsewhere.
>>> torch.nn.Hardshrink()(torch.tensor([0.25, 1.0]))
tensor([0., 1.])

Softshrink(lambd=0.5): softshrink(input) | =lambd
Move `input` towards 0 by `lambd`; it is 0 within that distance.
>>> torch.nn.Softshrink()(torch.tensor([0.25, 1.0]))
tensor([0.0000, 0.5000])

Threshold(threshold, value, inplace=False): threshold(input) | threshold value inplace?
Return `input` where it is above a threshold, `value` elsewhere.
>>> torch.nn.Threshold(1.0, 20.0)(torch.tensor([0.5, 2.0]))
tensor([20.,  2.])

GLU(dim=-1): glu(input) | dim
Multiply the first half along an axis by `sigmoid` of the second half.
>>> torch.nn.GLU()(torch.tensor([2.0, 0.0]))
tensor([1.])

Softmax(dim=None): softmax(input) | dim
Compute `exp(input) / sum(exp(input))` along an axis.
>>> torch.nn.Softmax(dim=0)(torch.zeros(2))
tensor([0.5000, 0.5000])

LogSoftmax(dim=None): log_softmax(input) | dim
Compute the logarithm of `Softmax`.
>>> torch.nn.LogSoftmax(dim=0)(torch.zeros(2))
tensor([-0.6931, -0.6931])

Softmin(dim=None): softmin(input) | dim
Compute `Softmax` of `-input`.
>>> torch.nn.Softmin(dim=0)(torch.zeros(2))
tensor([0.5000, 0.5000])
"""

__all__ = [
    *define_layers(globals(), FunctionLayer, vars(functional), _ROWS),
    "MultiheadAttention",
    "PReLU",
    "Softmax2d",
]


class Softmax2d(Module):
    """Softmax over the channels of images.

    >>> torch.nn.Softmax2d()(torch.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Any) -> Any:
        """Return numbers that add up to one over the channels."""
        if input.ndim not in (3, 4):
            raise ArgumentError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead"
            )
        return functional.softmax(input, -3)


class PReLU(Module):
    """`LeakyReLU` with a slope that is trained, for all channels or for each.

    >>> torch.nn.PReLU(init=0.5)(torch.tensor([-2.0, 2.0])).detach()
    tensor([-1.,  2.])
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(
            create.full((num_parameters,), float(init), device=device, dtype=dtype)
        )

    def reset_parameters(self) -> None:
        """Set all slopes to the first one."""
        constant_(self.weight, self.init)

    def forward(self, input: Any) -> Any:
        """Return the function of each element."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of slopes."""
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention with several heads, and projections of queries, keys, values and results.

    Arrays are of shape (length, samples, features), or with `batch_first` (samples, length,
    features), or without samples.

    >>> attention = torch.nn.MultiheadAttention(4, 2)
    >>> x = torch.ones(3, 1, 4)
    >>> result, weights = attention(x, x, x)
    >>> result.shape, weights.shape
    (torch.Size([3, 1, 4]), torch.Size([1, 3, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ArgumentError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        super().__init__()
        if embed_dim % num_heads:
            raise CheckError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.batch_first, self.head_dim = batch_first, embed_dim // num_heads

        def empty(*sizes: int) -> Parameter:
            return Parameter(create.empty(*sizes, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = empty(3 * embed_dim, embed_dim)
            for name in ("q_proj_weight", "k_proj_weight", "v_proj_weight"):
                self.register_parameter(name, None)
        else:
            self.q_proj_weight = empty(embed_dim, embed_dim)
            self.k_proj_weight = empty(embed_dim, self.kdim)
            self.v_proj_weight = empty(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", empty(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        self.bias_k = empty(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = empty(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            weight = getattr(self, name)
            if weight is not None:
                xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            constant_(self.in_proj_bias, 0.0)
            constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                xavier_normal_(bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Return the results, and the weights or None.

        `key_padding_mask` (samples, S) and `attn_mask` (L, S) are true where a key is left out, or
        hold numbers that are added to the scores.
        """
        swap = self.batch_first and query.ndim == 3
        if query.ndim not in (2, 3):
            raise CheckError(
                "query should be unbatched 2D or batched 3D tensor but received "
                f"{query.ndim}-D query tensor"
            )
        if swap:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        found, weights = multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight,
            self.in_proj_bias, self.bias_k, self.bias_v, self.add_zero_attn, self.dropout,
            self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, not self._qkv_same_embed_dim, self.q_proj_weight,
            self.k_proj_weight, self.v_proj_weight, None, None, average_attn_weights, is_causal,
        )  # fmt: skip
        return (found.transpose(0, 1) if swap else found), weights
