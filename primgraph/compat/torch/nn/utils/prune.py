"""Pruning: weights some of whose elements are zero, by the names of `torch.nn.utils.prune`.

A pruned parameter `NAME` is a product that is computed before each call of its module: of the
parameter `NAME_orig` and the buffer `NAME_mask`, of zeros and ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from primgraph import operators as pg
from primgraph.compat.absent import absent
from primgraph.compat.torch.creation import create
from primgraph.compat.torch.functions.reductions import norm
from primgraph.compat.torch.nn.utils.convert_parameters import parameters_to_vector
from primgraph.compat.torch.tensor import Parameter
from primgraph.eager.seeds import reserve_generator
from primgraph.errors import ArgumentError, UnknownNameError

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """Hook that multiplies a parameter by a mask; a subclass defines `compute_mask`.

    `PRUNING_TYPE` says what a further method on the same parameter chooses from: the elements that
    are left ("unstructured"), the channels that are left ("structured"), or all ("global").
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask of elements of `t` that are kept, of those that `default_mask` keeps."""

    def __call__(self, module: Any, inputs: Any) -> None:
        module.__dict__[self._tensor_name] = self.apply_mask(module)

    def apply_mask(self, module: Any) -> Any:
        """Return the product of the parameter and its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        mask = getattr(module, f"{self._tensor_name}_mask")
        return pg.multiply(pg.astype(mask, original.type.dtype), original)

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a parameter of `module`, by its elements or by scores; return the method."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        before = _take_hook(module, name)
        if before is not None:
            chain = PruningContainer(before)
            chain.add_pruning_method(method)
            method = chain
        original = getattr(module, f"{name}_orig" if before is not None else name)
        scores = original if importance_scores is None else importance_scores
        if tuple(scores.shape) != tuple(original.shape):
            raise ArgumentError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if before is None:
            default = create.ones_like(original.detach())
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        else:
            default = getattr(module, f"{name}_mask")
        mask = method.compute_mask(scores.detach(), default)
        if before is None:
            module.register_buffer(f"{name}_mask", mask)
        else:
            module._buffers[f"{name}_mask"] = mask
        method(module, ())
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return `t` with zeros for the elements that are left out."""
        scores = t if importance_scores is None else importance_scores
        default = create.ones_like(t.detach()) if default_mask is None else default_mask
        return pg.multiply(t, self.compute_mask(scores.detach(), default))

    def remove(self, module: Any) -> None:
        """Make the pruned parameter an ordinary one."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        original = module._parameters.pop(f"{name}_orig")
        del module._buffers[f"{name}_mask"]
        module.__dict__.pop(name, None)
        original.data = weight
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter: each chooses among what the ones before have left."""

    def __init__(self, *args: Any) -> None:
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in methods:
            self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ArgumentError(
                f"Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return `default_mask` without what the last method leaves out."""
        method, kept = self._pruning_methods[-1], default_mask.numpy() != 0
        chosen: tuple[Any, ...] = (slice(None),) * kept.ndim
        if method.PRUNING_TYPE == "unstructured":
            chosen = np.nonzero(kept)
        elif method.PRUNING_TYPE == "structured":
            axis = getattr(method, "dim", 0) % kept.ndim
            others = tuple(k for k in range(kept.ndim) if k != axis)
            places = np.nonzero(kept.any(axis=others))[0]
            chosen = (*chosen[:axis], places, *chosen[axis + 1 :])
        mask = default_mask.numpy().copy()
        part = method.compute_mask(t[chosen], create.tensor(mask[chosen]))
        mask[chosen] = part.numpy()
        return create.tensor(mask)


def _take_hook(module: Any, name: str) -> Any:
    """Remove and return the method that prunes a parameter; None if there is none."""
    hooks = module._hooks.get("forward_pre", {})
    for number, (hook, _) in list(hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            del hooks[number]
            return [*hook] if isinstance(hook, PruningContainer) else [hook]
    if not isinstance(module._parameters.get(name), Parameter):
        raise UnknownNameError(f"{type(module).__name__!r} object has no attribute {name!r}")
    return None


def _count(amount: Any, size: int) -> int:
    """Return a number of elements, given as such or as a share. Raises `ArgumentError`."""
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise ArgumentError(f"Invalid type for amount: {amount!r:.60}. Must be int or float.")
    if (isinstance(amount, float) and not 0 <= amount <= 1) or amount < 0:
        raise ArgumentError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )
    if isinstance(amount, int) and amount > size:
        raise ArgumentError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return round(amount * size) if isinstance(amount, float) else amount


class Identity(BasePruningMethod):
    """Method that leaves out nothing."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return `default_mask`."""
        return default_mask


class _Sized(BasePruningMethod):
    """Method that leaves out an amount of elements, or of channels along `dim`."""

    dim: int = -1

    def __init__(self, amount: Any) -> None:
        _count(amount, 2**62)
        self.amount = amount

    def scores(self, t: Any) -> Any:
        """Return an array: elements or channels with the smallest are left out."""
        raise NotImplementedError

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return `default_mask` without the amount of smallest scores."""
        scores = np.asarray(self.scores(t))
        count = _count(self.amount, scores.size)
        lowest = np.argsort(scores.reshape(-1), kind="stable")[:count]
        keep: Any = np.ones(scores.size, bool)
        keep[lowest] = False
        if scores.ndim == 1 and t.ndim != 1:
            keep = keep.reshape([-1 if k == self.dim % t.ndim else 1 for k in range(t.ndim)])
        else:
            keep = keep.reshape(scores.shape)
        return pg.multiply(default_mask, create.tensor(keep.astype(default_mask.numpy().dtype)))


class RandomUnstructured(_Sized):
    """Method that leaves out elements at random."""

    PRUNING_TYPE = "unstructured"

    def scores(self, t: Any) -> Any:
        return reserve_generator()().random(tuple(t.shape))


class L1Unstructured(_Sized):
    """Method that leaves out the elements of smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def scores(self, t: Any) -> Any:
        return np.abs(t.numpy())


class RandomStructured(_Sized):
    """Method that leaves out channels at random: slices along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def scores(self, t: Any) -> Any:
        return reserve_generator()().random(t.shape[self.dim])


class LnStructured(RandomStructured):
    """Method that leaves out the channels of smallest norm of order `n`."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Any) -> Any:
        others = [k for k in range(t.ndim) if k != self.dim % t.ndim]
        return norm(t, p=self.n, dim=others).numpy()


class CustomFromMask(BasePruningMethod):
    """Method with a mask of the caller's."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the elements that both masks keep."""
        return pg.multiply(default_mask, pg.astype(self.mask, default_mask.type.dtype))


def identity(module: Any, name: str) -> Any:
    """Make a parameter a pruned one with a mask of ones; return `module`.

    >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "weight")
    >>> layer.weight_mask
    tensor([[1., 1.]])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Leave out elements at random: a number of them or a share; return `module`.

    >>> layer = torch.nn.utils.prune.random_unstructured(torch.nn.Linear(4, 1), "weight", 0.5)
    >>> layer.weight_mask.sum()
    tensor(2.)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Leave out the elements of smallest absolute value, or score; return `module`.

    >>> layer = torch.nn.Linear(3, 1, bias=False)
    >>> layer.weight.data.copy_(torch.tensor([[0.1, -3.0, 2.0]]))
    tensor([[ 0.1000, -3.0000,  2.0000]])
    >>> torch.nn.utils.prune.l1_unstructured(layer, "weight", amount=1).weight_mask
    tensor([[0., 1., 1.]])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Leave out channels along `dim` at random; return `module`.

    >>> layer = torch.nn.Linear(3, 2)
    >>> layer = torch.nn.utils.prune.random_structured(layer, "weight", amount=1, dim=0)
    >>> layer.weight_mask.sum()
    tensor(3.)
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Leave out the channels along `dim` of smallest norm of order `n`; return `module`.

    >>> layer = torch.nn.Linear(3, 2)
    >>> layer = torch.nn.utils.prune.ln_structured(layer, "weight", amount=1, n=2, dim=1)
    >>> layer.weight_mask.sum()
    tensor(4.)
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Leave out the elements where `mask` is zero; return `module`.

    >>> layer, mask = torch.nn.Linear(2, 1), torch.tensor([[0.0, 1.0]])
    >>> torch.nn.utils.prune.custom_from_mask(layer, "weight", mask).weight[0, 0] == 0
    tensor(True)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Any, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune parameters, given as pairs of module and name, by all their elements together.

    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    >>> prune = torch.nn.utils.prune
    >>> weights = [(layer, "weight") for layer in model]
    >>> prune.global_unstructured(weights, prune.L1Unstructured, amount=0.5)
    >>> sum(layer.weight_mask.sum() for layer in model)
    tensor(4.)
    """
    pairs = list(parameters)
    known = importance_scores or {}
    scores = [known.get((m, n), getattr(m, n)).detach() for m, n in pairs]
    masks = [
        getattr(m, f"{n}_mask", create.ones_like(s))
        for (m, n), s in zip(pairs, scores, strict=True)
    ]
    chain = PruningContainer()
    chain._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            "Only 'unstructured' PRUNING_TYPE supported for the `pruning_method`. Found method "
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    chain.add_pruning_method(method)
    kept = chain.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    start = 0
    for (module, name), mask in zip(pairs, masks, strict=True):
        stop = start + int(np.prod(mask.shape))
        custom_from_mask(module, name, kept[start:stop].reshape(mask.shape))
        start = stop


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter an ordinary one, with its zeros; return `module`.

    >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(2, 1), "weight")
    >>> list(torch.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    hooks = module._hooks.get("forward_pre", {})
    for number, (hook, _) in list(hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del hooks[number]
            return module
    raise ArgumentError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Return whether a parameter of `module`, or of a module within it, is pruned.

    >>> torch.nn.utils.prune.is_pruned(torch.nn.Linear(2, 1))
    False
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook, *_ in part._hooks.get("forward_pre", {}).values()
    )


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
