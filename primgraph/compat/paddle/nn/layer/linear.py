"""Linear layers, embeddings and other layers with weights by the names that they have in Paddle."""

from __future__ import annotations

from typing import Any

from primgraph.compat.paddle.framework import checked_place, in_dynamic_mode, reject_options
from primgraph.compat.paddle.initializers import Constant
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.layers import Layer, shown_dtype
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError


class Identity(Layer):
    """Layer that returns its argument, and takes any arguments to begin with.

    >>> paddle.nn.Identity(54, unused=True)(paddle.ones([2])).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return `input`."""
        return input


class Linear(Layer):
    """Layer `x @ weight + bias`; the weight is of shape (in_features, out_features).

    >>> paddle.nn.Linear(3, 2)(paddle.ones([5, 3])).shape
    paddle.Size([5, 2])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.name = in_features, out_features, name
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Any) -> Any:
        """`input` of shape (..., in_features) becomes (..., out_features)."""
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes and the dtype."""
        name = f", name={self.name}" if self.name else ""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"dtype={shown_dtype(self)}{name}"
        )


class Bilinear(Layer):
    """Layer `x1 @ weight[k] @ x2 + bias` for each output `k`.

    >>> layer = paddle.nn.Bilinear(2, 3, 4)
    >>> layer(paddle.ones([5, 2]), paddle.ones([5, 3])).shape
    paddle.Size([5, 4])
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._sizes = in1_features, in2_features, out_features
        shape = [out_features, in1_features, in2_features]
        self.weight = self.create_parameter(shape, weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Any, x2: Any) -> Any:
        """Return the outputs of shape (samples, out_features)."""
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes and the dtype."""
        first, second, out = self._sizes
        return (
            f"in1_features={first}, in2_features={second}, out_features={out}, "
            f"dtype={shown_dtype(self)}"
        )


class Embedding(Layer):
    """Layer that returns rows of `weight`; that of `padding_idx` is zero.

    >>> paddle.nn.Embedding(5, 3)(paddle.to_tensor([[0, 2]])).shape
    paddle.Size([1, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: Any = None,
        name: str | None = None,
        *,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        reject_options("Embedding", max_norm=max_norm, scale_grad_by_freq=scale_grad_by_freq)
        checked_place("Embedding", device)
        if num_embeddings <= 0 or embedding_dim <= 0:
            raise ArgumentError("num_embeddings and embedding_dim must be greater than 0")
        self._num_embeddings, self._embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ArgumentError(f"padding_idx must be within [-{num_embeddings}, {num_embeddings})")
        self._padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self._sparse, self._name = sparse, name
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr, dtype)
        if self._padding_idx is not None and in_dynamic_mode():
            with no_grad():
                self.weight[self._padding_idx] = 0.0

    def forward(self, x: Any) -> Any:
        """Return the rows of the weight at positions `x`."""
        return functional.embedding(x, self.weight, self._padding_idx)

    def extra_repr(self) -> str:
        """Return the sizes and options."""
        padding = "" if self._padding_idx is None else f", padding_idx={self._padding_idx}"
        return (
            f"{self._num_embeddings}, {self._embedding_dim}{padding}, sparse={self._sparse}, "
            "scale_grad_by_freq=False"
        )


class PReLU(Layer):
    """Layer that multiplies negative elements by a weight, for all channels or for each.

    >>> paddle.nn.PReLU()(paddle.to_tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._num_parameters, self._init, self._data_format = num_parameters, init, data_format
        self._weight = self.create_parameter(
            [num_parameters], weight_attr, default_initializer=Constant(init)
        )

    def forward(self, x: Any) -> Any:
        """Return `x` where it is positive, else times the weight."""
        return functional.prelu(x, self._weight, self._data_format)

    def extra_repr(self) -> str:
        """Return the options."""
        return (
            f"num_parameters={self._num_parameters}, data_format={self._data_format}, "
            f"init={self._init}, dtype={shown_dtype(self)}"
        )


class Softmax2D(Layer):
    """Softmax over the channels of images.

    >>> paddle.nn.Softmax2D()(paddle.zeros([1, 2, 1, 1])).flatten().tolist()
    [0.5, 0.5]
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return shares of the channels."""
        return functional.softmax(x, axis=-3)


class UpsamplingNearest2D(Layer):
    """Layer that repeats the elements of images.

    >>> paddle.nn.UpsamplingNearest2D(scale_factor=2)(paddle.ones([1, 1, 2, 2])).shape
    paddle.Size([1, 1, 4, 4])
    """

    _mode = "nearest"

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.data_format = size, scale_factor, data_format

    def extra_repr(self) -> str:
        """Return the size or factor, and the layout."""
        size = f"size={self.size}" if self.scale_factor is None else ""
        return f"{size or f'scale_factor={self.scale_factor}'}, data_format={self.data_format}"

    def forward(self, x: Any) -> Any:
        """Return larger images."""
        return functional.interpolate(
            x,
            self.size,
            self.scale_factor,
            self._mode,
            self._mode == "bilinear",
            data_format=self.data_format,
        )


class UpsamplingBilinear2D(UpsamplingNearest2D):
    """Layer that interpolates images linearly; corners stay where they are.

    >>> paddle.nn.UpsamplingBilinear2D(size=[3, 3])(paddle.ones([1, 1, 2, 2])).shape
    paddle.Size([1, 1, 3, 3])
    """

    _mode = "bilinear"
