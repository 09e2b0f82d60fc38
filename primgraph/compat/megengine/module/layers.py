"""Layers without parameters, which hold the arguments of a function, and simple ones with some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.megengine import functional
from primgraph.compat.megengine.module import init
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.tensor import Parameter
from primgraph.compat.modules.layer_tables import define_layers, show
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.types import FLOAT32

# Rows have no types.
F: Any = functional
_ROWS = """
Softmax(axis=None): softmax(inputs) | axis
`functional.softmax` along `axis`, or the axis that it takes without one.
>>> megengine.module.Softmax()(megengine.functional.zeros(2))
Tensor([0.5 0.5], device=xpux:0)

Sigmoid(): sigmoid(inputs)
`1 / (1 + exp(-x))`.
>>> megengine.module.Sigmoid()(megengine.functional.zeros(1))
Tensor([0.5], device=xpux:0)

SiLU(): silu(inputs)
`x * sigmoid(x)`.
>>> megengine.module.SiLU()(megengine.functional.zeros(1))
Tensor([0.], device=xpux:0)

GELU(): gelu(inputs)
`x` times its normal distribution function.
>>> megengine.module.GELU()(megengine.functional.zeros(1))
Tensor([0.], device=xpux:0)

ReLU(): relu(x)
`max(x, 0)`.
>>> megengine.module.ReLU()(megengine.Tensor([-1.0, 2.0]))
Tensor([0. 2.], device=xpux:0)

Tanh(): tanh(x)
The hyperbolic tangent, which MegEngine has as a function alone.
>>> megengine.module.Tanh()(megengine.functional.zeros(1))
Tensor([0.], device=xpux:0)

LeakyReLU(negative_slope=0.01): leaky_relu(inputs)
Elements, or `negative_slope` times those that are negative.
>>> megengine.module.LeakyReLU(0.5)(megengine.Tensor([-1.0, 2.0]))
Tensor([-0.5  2. ], device=xpux:0)

Dropout(drop_prob=0.0): dropout(inputs) | drop_prob
Some elements are zero in training, and the others scaled.
>>> megengine.module.Dropout(0.5).eval()(megengine.functional.ones(2))
Tensor([1. 1.], device=xpux:0)

MaxPool2d(kernel_size, stride=None, padding=0): max_pool2d(inp) | kernel_size stride padding
The largest element of each window.
>>> megengine.module.MaxPool2d(2)(megengine.functional.ones((1, 1, 4, 4))).shape
(1, 1, 2, 2)

AvgPool2d(kernel_size, stride=None, padding=0, mode="average_count_exclude_padding"): \
avg_pool2d(inp) | kernel_size stride padding mode
The mean of each window.
>>> megengine.module.AvgPool2d(2)(megengine.functional.ones((1, 1, 4, 4))).shape
(1, 1, 2, 2)

AdaptiveMaxPool2d(oshp): adaptive_max_pool2d(inp)
The largest element of each window, of which there are `oshp`.
>>> megengine.module.AdaptiveMaxPool2d(1)(megengine.functional.ones((1, 1, 4, 4))).shape
(1, 1, 1, 1)

AdaptiveAvgPool2d(oshp): adaptive_avg_pool2d(inp)
The mean of each window, of which there are `oshp`.
>>> megengine.module.AdaptiveAvgPool2d((1, 2))(megengine.functional.ones((1, 1, 4, 4))).shape
(1, 1, 1, 2)

PixelShuffle(upscale_factor): pixel_shuffle(x)
Channels moved into space.
>>> megengine.module.PixelShuffle(2)(megengine.functional.ones((1, 4, 3, 3))).shape
(1, 1, 6, 6)

LocalResponseNorm(kernel_size=5, k=2.0, alpha=1e-4, beta=0.75): local_response_norm(inp)
Elements divided by a power of the sum of squares of neighbouring channels.
>>> megengine.module.LocalResponseNorm()(megengine.functional.ones((1, 4, 3, 3))).shape
(1, 4, 3, 3)

SlidingWindow(kernel_size, padding=0, stride=1, dilation=1): sliding_window(inp)
All windows, as two more axes.
>>> megengine.module.SlidingWindow(2)(megengine.functional.ones((1, 1, 3, 3))).shape
(1, 1, 2, 2, 2, 2)

SlidingWindowTranspose(output_size, kernel_size, padding=0, stride=1, dilation=1): \
sliding_window_transpose(inp)
The sum of windows where `SlidingWindow` takes them from.
>>> windows = megengine.functional.ones((1, 1, 2, 2, 2, 2))
>>> megengine.module.SlidingWindowTranspose(3, 2)(windows).shape
(1, 1, 3, 3)

Identity(): copy(x)
The argument.
>>> megengine.module.Identity()(megengine.functional.zeros(1))
Tensor([0.], device=xpux:0)

Concat(): concat(inps, axis=0)
Tensors joined along an axis.
>>> megengine.module.Concat()([megengine.functional.zeros(1)] * 2)
Tensor([0. 0.], device=xpux:0)

Pad(pad_width, mode="constant", constant_val=0.0): _pad(src)
More elements before and after along each axis.
>>> megengine.module.Pad(((1, 1),))(megengine.functional.ones(1))
Tensor([0. 1. 0.], device=xpux:0)
"""


class _FunctionLayer(Module):
    """Layer that calls a function with its attributes as arguments."""

    _shown = ""
    kernel_size: Any
    stride: Any

    def _complete(self) -> None:
        if "stride" in self.__dict__ and self.stride is None:
            self.stride = self.kernel_size

    def _module_info_string(self) -> str:
        return show(self, self._shown)


def _pad(src: Any, pad_width: Any, mode: str, constant_val: float) -> Any:
    return F.nn.pad(src, pad_width, mode, constant_val)


def _with_name(text: str) -> str:
    """Give each layer the argument `name`, which all modules have."""
    heads = text.replace("(): ", "(name=None): ")
    return heads.replace("): ", ", name=None): ").replace("(name=None, name=None)", "(name=None)")


_FUNCTIONS: dict[str, Callable[..., Any]] = {**vars(F), "_pad": _pad}

__all__ = [
    *define_layers(globals(), _FunctionLayer, _FUNCTIONS, _with_name(_ROWS)),
    "Elemwise",
    "Embedding",
    "Linear",
    "LinearRelu",
    "PReLU",
    "Sequential",
]


class Elemwise(Module):
    """A function of single elements by its name, such as "ADD" or "FUSE_ADD_RELU".

    >>> megengine.module.Elemwise("add")(megengine.Tensor(1.0), megengine.Tensor(2.0))
    Tensor(3.0, device=xpux:0)
    """

    def __init__(self, method: str, name: str | None = None) -> None:
        super().__init__(name)
        *_, last = str(method).lower().split(".")
        self.method, self._fused = method, last.startswith("fuse_add_")
        other = {"true_div": "div", "negate": "neg", "floor_div": "floor_div"}
        short = last.removeprefix("fuse_add_")
        short = other.get(short, short)
        if short not in F.__all__:
            raise OptionError(f"Elemwise: there is no function {method!r:.60}")
        self._function = getattr(F, short)

    def forward(self, *inps: Any) -> Any:
        """Return the function of the arguments."""
        return self._function(inps[0] + inps[1]) if self._fused else self._function(*inps)


class PReLU(Module):
    """Elements, or a trained factor times those that are negative: one, or one for each channel.

    >>> megengine.module.PReLU()(megengine.Tensor([-1.0, 2.0]))
    Tensor([-0.25  2.  ], device=xpux:0)
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.num_parameters = num_parameters
        shape = (1, num_parameters, 1, 1) if num_parameters > 1 else (1,)
        self.weight = Parameter(np.full(shape, init, FLOAT32))

    def forward(self, inputs: Any) -> Any:
        """Return elements, scaled where they are negative."""
        return F.prelu(inputs, self.weight)


class Linear(Module):
    """`x @ weight.T + bias`; the weight is of shape (out_features, in_features).

    It is normal with variance `1 / in_features`, and the bias is zero, as in MegEngine.

    >>> megengine.module.Linear(2, 3)(megengine.functional.ones((4, 2))).shape
    (4, 3)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        compute_mode: str = "default",
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.in_features, self.out_features = in_features, out_features
        self.compute_mode = compute_mode
        self.weight = Parameter(np.zeros((out_features, in_features), FLOAT32))
        self.bias = Parameter(np.zeros(out_features, FLOAT32)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weight anew, and set the bias to zero."""
        init.normal_(self.weight, 0.0, self.in_features**-0.5)
        if self.bias is not None:
            init.zeros_(self.bias)

    def calc_linear(self, x: Any, weight: Any, bias: Any) -> Any:
        """Return the product with these weights."""
        return F.linear(x, weight, bias)

    def forward(self, x: Any) -> Any:
        """Return (..., out_features) of `x` of shape (..., in_features)."""
        return self.calc_linear(x, self.weight, self.bias)

    def _module_info_string(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LinearRelu(Linear):
    """`Linear`, then ReLU.

    >>> megengine.module.LinearRelu(2, 3)(megengine.functional.ones((4, 2))).min().item() >= 0
    True
    """

    def forward(self, inp: Any) -> Any:
        """Return (..., out_features)."""
        return pg.relu(super().forward(inp))


class Embedding(Module):
    """Rows of a trained table, normal at first, unless there is an `initial_weight`.

    >>> megengine.module.Embedding(5, 3)(megengine.Tensor([1, 4])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float | None = None,
        initial_weight: Any = None,
        freeze: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        for option, value in (
            ("padding_idx", padding_idx), ("max_norm", max_norm), ("norm_type", norm_type)
        ):  # fmt: skip
            if value is not None:
                raise OptionError(f"Embedding: {option} is not supported, as in MegEngine")
            setattr(self, option, None)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.freeze = freeze
        shape = (num_embeddings, embedding_dim)
        if initial_weight is None:
            self.weight = Parameter(np.zeros(shape, FLOAT32))
            self.reset_parameters()
        elif tuple(initial_weight.shape) != shape:
            raise ShapeError("The weight shape should match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(initial_weight)

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)

    def forward(self, inputs: Any) -> Any:
        """Return the row of each index."""
        return F.embedding(inputs, self.weight.detach() if self.freeze else self.weight)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float | None = None,
    ) -> Embedding:
        """Return a layer with this table, which is not trained if `freeze`."""
        if len(embeddings.shape) != 2:
            raise ArgumentError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, embeddings, freeze)


class Sequential(Module):
    """Modules that are called one after the other; named if they are in an `OrderedDict`.

    >>> M = megengine.module
    >>> net = M.Sequential(M.Linear(2, 3), M.ReLU())
    >>> net(megengine.functional.ones((1, 2))).shape, len(net), net[0].out_features
    ((1, 3), 2, 3)
    """

    def __init__(self, *args: Any, name: str | None = None) -> None:
        super().__init__(name)
        named = len(args) == 1 and isinstance(args[0], dict)
        items = args[0].items() if named else [(str(i), m) for i, m in enumerate(args)]
        self.layer_keys: Any = []
        for key, module in items:
            setattr(self, key, module)
            self.layer_keys.append(key)

    @property
    def layer_values(self) -> list[Any]:
        """The modules in order."""
        return [getattr(self, key) for key in self.layer_keys]

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            keys = self.layer_keys[idx]
            return type(self)({key: getattr(self, key) for key in keys})
        return getattr(self, self.layer_keys[idx])

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self.layer_keys[idx], module)

    def __delitem__(self, idx: Any) -> None:
        keys = self.layer_keys[idx] if isinstance(idx, slice) else [self.layer_keys[idx]]
        for key in keys:
            delattr(self, key)
        self.layer_keys = [key for key in self.layer_keys if key not in keys]

    def __len__(self) -> int:
        return len(self.layer_keys)

    def __iter__(self) -> Any:
        return iter(self.layer_values)

    def forward(self, inp: Any) -> Any:
        """Return the result of the last module."""
        for module in self.layer_values:
            inp = module(inp)
        return inp
