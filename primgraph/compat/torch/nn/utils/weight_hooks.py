"""Weights that hooks normalize before `forward`: `weight_norm` and `spectral_norm` of old."""

from __future__ import annotations

from typing import Any

from primgraph import operators as pg
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.nn.functional.distances import normalize
from primgraph.compat.torch.nn.utils.parametrizations import norm_except
from primgraph.compat.torch.tensor import Parameter
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError, UnknownKeyError

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]


class _Normalized:
    """Hook that computes a weight before each call."""

    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Any) -> Any:
        """Return the weight."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        module.__dict__[self.name] = self.compute(module)

    def install(self, module: Any) -> Any:
        """Begin to compute the weight; return `module`."""
        module.__dict__[self.name] = self.compute(module)
        module.register_forward_pre_hook(self)
        return module


class _WeightNorm(_Normalized):
    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = None if dim == -1 else dim

    def compute(self, module: Any) -> Any:
        length, direction = (getattr(module, f"{self.name}_{part}") for part in "gv")
        return direction * (length / norm_except(direction, self.dim))


class _SpectralNorm(_Normalized):
    def __init__(self, name: str, steps: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.steps, self.eps, self.dim = steps, eps, dim

    def matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix."""
        moved = pg.moveaxis(weight, self.dim, 0)
        return pg.reshape(moved, (moved.shape[0], -1))

    def compute(self, module: Any) -> Any:
        weight = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{part}") for part in "uv")
        matrix = self.matrix(weight)
        if module.training:
            with no_grad():
                fixed = matrix.detach()
                for _ in range(self.steps):
                    v.copy_(normalize(pg.matmul(pg.transpose(fixed), u), dim=0, eps=self.eps))
                    u.copy_(normalize(pg.matmul(fixed, v), dim=0, eps=self.eps))
        return weight / pg.sum(u.clone() * pg.matmul(matrix, v.clone()))


def _require(module: Any, name: str) -> Any:
    weight = module._parameters.get(name)
    if weight is None:
        raise UnknownKeyError(f"{type(module).__name__} has no parameter {name!r}")
    return weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a weight be computed of `NAME_g`, its lengths, and `NAME_v`; return `module`.

    >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_g', 'weight_v']
    """
    weight, hook = _require(module, name), _WeightNorm(name, dim)
    del module._parameters[name]
    module.register_parameter(f"{name}_g", Parameter(norm_except(weight, hook.dim).detach()))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    return hook.install(module)


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value before each call; return `module`.

    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight_orig']
    """
    weight = _require(module, name)
    if dim is None:
        dim = 1 if "ConvTranspose" in type(module).__name__ else 0
    hook, draws = _SpectralNorm(name, n_power_iterations, eps, dim), reserve_generator()()
    for part, n in zip("uv", hook.matrix(weight).shape, strict=True):
        drawn = create.tensor(draws.normal(size=n), dtype=weight.dtype)
        module.register_buffer(f"{name}_{part}", normalize(drawn, dim=0, eps=eps))
    del module._parameters[name]
    module.register_parameter(f"{name}_orig", weight)
    return hook.install(module)


def _remove(module: Any, name: str, kind: type[_Normalized], parts: tuple[str, ...]) -> Any:
    """Let a weight be a parameter again."""
    table = module._hooks.get("forward_pre", {})
    for number, (hook, _) in list(table.items()):
        if isinstance(hook, kind) and hook.name == name:
            value = hook.compute(module).detach()
            module.__dict__.pop(name, None)
            for part in parts:
                delattr(module, f"{name}_{part}")
            module.register_parameter(name, Parameter(value))
            del table[number]
            return module
    raise ArgumentError(f"{kind.__name__.strip('_')} of '{name}' not found in {module}")


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`; return `module`.

    >>> layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
    >>> [name for name, _ in torch.nn.utils.remove_weight_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    return _remove(module, name, _WeightNorm, ("g", "v"))


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`; return `module`.

    >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
    >>> [name for name, _ in torch.nn.utils.remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    return _remove(module, name, _SpectralNorm, ("orig", "u", "v"))
