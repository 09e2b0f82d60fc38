"""Products followed by normalization or an activation, and layers of images."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.megengine.functional import vision
from primgraph.compat.megengine.module import init
from primgraph.compat.megengine.module.layers import Linear
from primgraph.compat.megengine.module.module import Module
from primgraph.compat.megengine.module.normalization import BatchNorm1d
from primgraph.compat.megengine.tensor import Parameter
from primgraph.errors import OptionError
from primgraph.ir.types import FLOAT32

__all__ = ["BatchMatMulActivation", "Flip", "LinearBn1d", "LinearBnRelu1d", "Rot90"]


class LinearBn1d(Module):
    """`Linear` and `BatchNorm1d`, as attributes `linear` and `bn`.

    >>> megengine.module.LinearBn1d(2, 3)(megengine.functional.ones((4, 2))).shape
    (4, 3)
    """

    _is_rectified: ClassVar[bool] = False

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        track_running_stats: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.linear = Linear(in_features, out_features, bias)
        self.bn = BatchNorm1d(out_features, eps, momentum, affine, track_running_stats)

    def forward(self, x: Any) -> Any:
        """Return (n, out_features) of `x` of shape (n, in_features)."""
        found = self.bn(self.linear(x))
        return pg.relu(found) if self._is_rectified else found


class LinearBnRelu1d(LinearBn1d):
    """`Linear`, `BatchNorm1d`, then ReLU.

    >>> layer = megengine.module.LinearBnRelu1d(2, 3)
    >>> layer(megengine.functional.ones((4, 2))).min().item() >= 0
    True
    """

    _is_rectified: ClassVar[bool] = True


class BatchMatMulActivation(Module):
    """`weight @ x + bias` for each matrix of a batch, then an activation.

    The weight is of shape (batch, out_features, in_features). `nonlinear_mode` is "identity" or
    "relu".

    >>> layer = megengine.module.BatchMatMulActivation(2, 3, 4)
    >>> layer(megengine.functional.ones((2, 3, 5))).shape
    (2, 4, 5)
    """

    def __init__(
        self,
        batch: int,
        in_features: int,
        out_features: int,
        bias: bool = True,
        nonlinear_mode: str = "identity",
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if nonlinear_mode not in ("identity", "relu"):
            raise OptionError(f"nonlinear_mode is 'identity' or 'relu', not {nonlinear_mode!r:.40}")
        self.in_features, self.out_features = in_features, out_features
        self.nonlinear_mode = nonlinear_mode
        self.weight = Parameter(np.zeros((batch, out_features, in_features), FLOAT32))
        self.bias = Parameter(np.zeros((1, out_features, 1), FLOAT32)) if bias else None
        init.normal_(self.weight, 0.0, in_features**-0.5)

    def forward(self, x: Any) -> Any:
        """Return (batch, out_features, n) of `x` of shape (batch, in_features, n)."""
        found = pg.matmul(self.weight, x)
        found = found if self.bias is None else found + self.bias
        return pg.relu(found) if self.nonlinear_mode == "relu" else found


class Flip(Module):
    """The layer of `functional.vision.flip`, of images (n, h, w, c).

    >>> images = megengine.functional.arange(2).reshape(1, 2, 1, 1)
    >>> megengine.module.Flip(horizontal=False)(images).flatten()
    Tensor([1. 0.], device=xpux:0)
    """

    def __init__(
        self, vertical: bool = True, horizontal: bool = True, name: str | None = None
    ) -> None:
        super().__init__(name)
        self.vertical, self.horizontal = vertical, horizontal

    def forward(self, inp: Any) -> Any:
        """Return images with their rows, columns or both reversed."""
        return vision.flip(inp, self.vertical, self.horizontal)


class Rot90(Module):
    """The layer of `functional.vision.rot90`, of images (n, h, w, c).

    >>> images = megengine.functional.arange(4).reshape(1, 2, 2, 1)
    >>> megengine.module.Rot90()(images).flatten()
    Tensor([2. 0. 3. 1.], device=xpux:0)
    """

    def __init__(self, clockwise: bool = True, name: str | None = None) -> None:
        super().__init__(name)
        self.clockwise = clockwise

    def forward(self, inp: Any) -> Any:
        """Return images that are turned by 90 degrees."""
        return vision.rot90(inp, self.clockwise)
