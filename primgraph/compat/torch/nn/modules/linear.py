"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.init import kaiming_uniform_, uniform_
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Layer that returns its argument; it takes and ignores any arguments.

    >>> torch.nn.Identity(5, unused=1)(torch.ones(1))
    tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return `input`."""
        return input


class Linear(Module):
    """`x @ weight.T + bias`; the weight is of shape (out_features, in_features).

    Both are uniform between plus and minus the reciprocal root of `in_features`, as in torch.

    >>> torch.nn.Linear(2, 3)(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    in_features: int
    out_features: int

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            create.empty((out_features, in_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(create.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            limit = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            uniform_(self.bias, -limit, limit)

    def forward(self, input: Any) -> Any:
        """Return (..., out_features) of `input` of shape (..., in_features)."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """The projection of results in attention."""


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each output `k`.

    >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(1, 2), torch.ones(1, 3)).shape
    torch.Size([1, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        sizes = (out_features, in1_features, in2_features)
        self.weight = Parameter(create.empty(sizes, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(create.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight and the bias anew."""
        limit = 1 / math.sqrt(self.weight.shape[1])
        uniform_(self.weight, -limit, limit)
        if self.bias is not None:
            uniform_(self.bias, -limit, limit)

    def forward(self, input1: Any, input2: Any) -> Any:
        """Return (..., out_features)."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
