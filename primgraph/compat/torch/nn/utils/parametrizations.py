"""Normalized and orthogonal weights, as parametrizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph import linalg
from primgraph import operators as pg
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn.functional.distances import normalize
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.nn.utils.parametrize import register_parametrization
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError, OptionError, ShapeError

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def norm_except(weight: Any, dim: int | None) -> Any:
    """Return the norms over all axes but one, in the shape to which they broadcast."""
    axes = tuple(i for i in range(weight.ndim) if dim is None or i != dim % weight.ndim)
    return pg.sqrt(pg.sum(pg.square(weight), axes, True))


class _WeightNorm(Module):
    """The product of a length and a direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = None if dim == -1 else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        """Return the weight of length `weight_g` and direction `weight_v`."""
        return weight_v * (weight_g / norm_except(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Return the lengths and the direction of a weight."""
        return norm_except(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight by its lengths and its direction; return `module`.

    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([40, 1])
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iterations estimate."""

    def __init__(self, weight: Any, steps: int, dim: int, eps: float) -> None:
        super().__init__()
        if steps <= 0:
            raise ArgumentError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={steps}"
            )
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, steps
        if weight.ndim > 1:
            draws = reserve_generator()()
            with no_grad():
                matrix = self._reshape_weight_to_matrix(weight)
                for vector, n in zip(("_u", "_v"), matrix.shape, strict=True):
                    drawn = create.tensor(draws.normal(size=n), dtype=weight.dtype)
                    self.register_buffer(vector, normalize(drawn, dim=0, eps=eps))
                self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        moved = pg.moveaxis(weight, self.dim, 0)
        return pg.reshape(moved, (moved.shape[0], -1))

    def _power_method(self, matrix: Any, steps: int) -> None:
        matrix = matrix.detach()
        u, v = self._u, self._v
        for _ in range(steps):
            u = normalize(pg.matmul(matrix, v), dim=0, eps=self.eps)
            v = normalize(pg.matmul(pg.transpose(matrix), u), dim=0, eps=self.eps)
        self._u.copy_(u), self._v.copy_(v)

    def forward(self, weight: Any) -> Any:
        """Return the weight divided by its norm."""
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            with no_grad():
                self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone().detach(), self._v.clone().detach()
        return weight / pg.sum(u * pg.matmul(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        """Return the weight: one of norm 1 is its own original."""
        return value


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value; return `module`.

    >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    >>> layer.weight.shape
    torch.Size([3, 3])
    """
    weight = getattr(module, name, None)
    if weight is None or name not in (*module._parameters, *module._buffers):
        raise ArgumentError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """An orthogonal matrix, or columns of one, computed from any matrix."""

    def __init__(self, weight: Any, name: str, is_exact: bool) -> None:
        super().__init__()
        self.orthogonal_map, self.shape = name, tuple(weight.shape)
        self.register_buffer("base", weight.detach().clone() if is_exact else None)

    def forward(self, x: Any) -> Any:
        """Return the matrix."""
        rows, columns = x.shape[-2:]
        wide = rows < columns
        x = pg.swapaxes(x, -1, -2) if wide else x
        n, k = x.shape[-2:]
        skew = self._skew(x, n, k)
        if self.orthogonal_map == "cayley":
            eye = np.eye(n, dtype=x.dtype)
            found = linalg.solve(eye - skew * 0.5, eye + skew * 0.5)
        else:
            # Products of reflections, "householder", give the same matrices.
            found = linalg.expm(skew)
        found = found[..., :k]
        if self.base is not None:
            found = pg.matmul(self._square_base(wide, n), found)
        return pg.swapaxes(found, -1, -2) if wide else found

    def _skew(self, x: Any, n: int, k: int) -> Any:
        """Return a square antisymmetric matrix of the lower part."""
        lower = pg.tril(x, -1)
        if n != k:
            lower = pg.pad(lower, [*[(0, 0)] * (x.ndim - 1), (0, n - k)])
        return lower - pg.swapaxes(lower, -1, -2)

    def _square_base(self, wide: bool, n: int) -> Any:
        base = pg.swapaxes(self.base, -1, -2) if wide else self.base
        return base if base.shape[-1] == n else linalg.qr(base, mode="complete")[0]

    def right_inverse(self, q: Any) -> Any:
        """Return an original whose matrix is `q`, which becomes the base."""
        if self.base is None:
            raise OptionError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        known = q.detach().numpy()
        array = np.linalg.qr(known if q.shape[-2] >= q.shape[-1] else np.swapaxes(known, -1, -2))
        signs = np.sign(np.diagonal(array[1], axis1=-2, axis2=-1))[..., None, :]
        nearest = array[0] * np.where(signs == 0, 1, signs)
        nearest = nearest if q.shape[-2] >= q.shape[-1] else np.swapaxes(nearest, -1, -2)
        self.base.copy_(nearest.astype(q.dtype))
        return q * 0


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Parametrize a matrix so that its rows or columns are orthonormal; return `module`.

    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
    >>> bool(torch.allclose(layer.weight @ layer.weight.T, torch.eye(3), atol=1e-5))
    True
    """
    weight = getattr(module, name, None)
    if weight is None or name not in (*module._parameters, *module._buffers):
        raise ArgumentError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ShapeError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    square = weight.shape[-2] == weight.shape[-1]
    chosen = orthogonal_map or ("matrix_exp" if square else "householder")
    if chosen not in ("matrix_exp", "cayley", "householder"):
        raise ArgumentError(
            f"orthogonal_map has to be one of 'matrix_exp', 'cayley', 'householder'. Got: {chosen}"
        )
    made = _Orthogonal(weight, chosen, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
