"""Parametrizations: parameters of modules that are computed from others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from primgraph.compat.torch.nn.modules.container import ModuleDict, ModuleList
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

# Values by parametrization, within `cached`.
_cache: dict[int, Any] = {}
_cached: list[bool] = [False]


class ParametrizationList(ModuleList):
    """The parametrizations of one parameter, and the originals from which it is computed.

    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
    >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    def __init__(self, modules: Any, original: Any, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            value = original
            for module in reversed(list(self)):
                if hasattr(type(module), "right_inverse"):
                    value = module.right_inverse(value)
        self.is_tensor = not isinstance(value, tuple)
        self.ntensors = 1 if self.is_tensor else len(value)
        if self.is_tensor:
            if value is original and isinstance(original, Parameter):
                self.original = original
            else:
                self._keep("original", value, original)
        else:
            for number, part in enumerate(value):
                self._keep(f"original{number}", part, original)

    def _keep(self, name: str, value: Any, original: Any) -> None:
        """Keep an original, as a parameter if the parametrized tensor is one."""
        if isinstance(original, Parameter):
            setattr(self, name, Parameter(value.detach(), original.requires_grad))
        else:
            self.register_buffer(name, value.detach())

    def forward(self) -> Any:
        """Compute the parameter."""
        if len(self) == 0:
            raise ArgumentError("a ParametrizationList has at least one parametrization")
        first, *others = self
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        for module in others:
            value = module(value)
        return value

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the parameter becomes `value`."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(type(module), "right_inverse"):
                    raise ArgumentError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                self.original.data = value
            else:
                for number, part in enumerate(value):
                    getattr(self, f"original{number}").data = part


def _read(module: Any, name: str) -> Any:
    parametrization = module.parametrizations[name]
    if not _cached[0]:
        return parametrization()
    key = id(parametrization)
    if key not in _cache:
        _cache[key] = parametrization()
    return _cache[key]


def _with_property(module: Any, name: str) -> None:
    """Give a module a class of its own, with a property for the parameter."""

    def read(self: Any) -> Any:
        return _read(self, name)

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def _with_own_class(module: Any) -> None:
    own = type(module)

    def deepcopy_of(self: Any, memo: Any) -> Any:
        other = self.__new__(type(self))
        memo[id(self)] = other
        other.__dict__ = _copied(self.__dict__, memo)
        return other

    methods = {"__deepcopy__": deepcopy_of, "__module__": own.__module__}
    module.__class__ = type(f"Parametrized{own.__name__}", (own,), methods)
    module.parametrizations = ModuleDict()


def _copied(values: dict[str, Any], memo: Any) -> dict[str, Any]:
    return {n: deepcopy(v, memo) for n, v in values.items() if n != "_states"} | {"_states": {}}


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Let a parameter or buffer be what a module computes from the original; return `module`.

    >>> class Positive(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.abs()
    >>> layer = torch.nn.Linear(2, 1)
    >>> layer = torch.nn.utils.parametrize.register_parametrization(layer, "weight", Positive())
    >>> bool((layer.weight >= 0).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ArgumentError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        _check(made, original)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _with_own_class(module)
    module.parametrizations[tensor_name] = made
    _with_property(module, tensor_name)
    return module


def _check(made: ParametrizationList, original: Any) -> None:
    with no_grad():
        value = made()
    if value.dtype != original.dtype or tuple(value.shape) != tuple(original.shape):
        raise ArgumentError(
            "Registering a parametrization may not change the dtype or the shape of the tensor, "
            f"unless `unsafe` flag is enabled: {tuple(original.shape)} becomes "
            f"{tuple(value.shape)}"
        )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrizations, or one of that name.

    >>> torch.nn.utils.parametrize.is_parametrized(torch.nn.Linear(2, 1))
    False
    """
    found = module._modules.get("parametrizations") if isinstance(module, Module) else None
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Let a parameter be one again: as it was computed, or the original; return `module`.

    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
    >>> layer = torch.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(f"Module {module} does not have a parametrization on {tensor_name}")
    known = module.parametrizations[tensor_name]
    names = ["original"] if known.is_tensor else [f"original{i}" for i in range(known.ntensors)]
    originals = [getattr(known, name) for name in names]
    is_parameter = any(name in known._parameters for name in names)
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        value = Parameter(value, originals[0].requires_grad) if is_parameter else value
        if known.is_tensor and is_parameter:
            originals[0].data = value.data
            value = originals[0]
    elif known.is_tensor:
        value = originals[0]
    else:
        raise ArgumentError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__mro__[1]
    if is_parameter:
        module.register_parameter(tensor_name, value)
    else:
        module.register_buffer(tensor_name, value)
    return module


def type_before_parametrizations(module: Any) -> type[Any]:
    """Return the class that a module had before it was parametrized.

    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
    >>> torch.nn.utils.parametrize.type_before_parametrizations(layer) is torch.nn.Linear
    True
    """
    own = type(module)
    return own.__mro__[1] if is_parametrized(module) else own


@contextmanager
def cached() -> Iterator[None]:
    """Enter a context in which parametrized tensors are computed one time each.

    >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
    >>> with torch.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    before = _cached[0]
    _cached[0] = True
    try:
        yield
    finally:
        _cached[0] = before
        if not before:
            _cache.clear()
