"""Optimizers by the names that they and their arguments have in `megengine.optimizer`."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from primgraph import linalg
from primgraph.compat.absent import absent
from primgraph.compat.training import formulas
from primgraph.compat.training.groups import FormulaOptimizer, Group, ParameterGroups
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, OptionError, UnknownKeyError
from primgraph.operators import astype, clip, minimum, stack

__all__ = [
    "LAMB",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "LRScheduler",
    "MultiStepLR",
    "Optimizer",
    "clip_grad_norm",
    "clip_grad_value",
]


class Optimizer(ParameterGroups):
    """Base class of optimizers: a subclass defines `_updates(param_group)` and `_create_state`.

    `params` are parameters, or dicts with `params` and options of a group. Methods return the
    optimizer: `opt.step().clear_grad()`.
    """

    def _create_state(self, param_group: Group) -> None:
        """Create the states of the parameters of a group, by `_add_state`."""

    def _add_state(self, param: Tensor, state_name: str, initializer: Any = None) -> None:
        """Create a state of a parameter, zeros unless given."""
        if initializer is None:
            self.fill_state(param, self.state[param], {state_name: 0.0})
        else:
            self.state[param][state_name] = initializer

    def _updates(self, param_group: Group) -> None:
        """Change the parameters of a group in place."""
        raise BuildError(f"{type(self).__name__} does not define _updates")

    def add_param_group(self, param_group: Group) -> None:
        """Add a group: a dict with `params` and options; the defaults fill in others."""
        super().add_param_group(param_group)
        self._create_state(self.param_groups[-1])

    def step(self) -> Self:
        """Change the parameters that have a gradient."""
        with no_grad():
            for group in self.param_groups:
                self._updates(group)
        return self

    def clear_grad(self) -> Self:
        """Let no parameter have a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
        return self

    def zero_grad(self) -> Self:
        """Let gradients be zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad = parameter.grad * 0.0
        return self

    def backward(self, loss: Any) -> None:
        """Raise: gradients are computed by `megengine.autodiff.GradManager`."""
        raise BuildError("use autodiff.GradManager instead of optimizer.backward")

    def state_dict(self, keep_var: bool = False) -> dict[str, Any]:
        """Return the states and groups, with numbers in place of the parameters.

        States are arrays, or with `keep_var` the tensors themselves.
        """
        found = super().state_dict()
        if not keep_var:
            found["state"] = {
                key: {n: v.numpy() if isinstance(v, Tensor) else v for n, v in values.items()}
                for key, values in found["state"].items()
            }
        return found


class _FormulaOptimizer(FormulaOptimizer, Optimizer):
    """Optimizer of one formula, which updates all parameters in one kernel."""

    def _create_state(self, param_group: Group) -> None:
        for parameter in param_group["params"]:
            self.fill_state(parameter, self.state[parameter], self._initial_state(param_group))

    def step(self) -> Self:
        """Change the parameters that have a gradient."""
        with no_grad():
            self.update(self.formula, self._initial_state)
        return self


class SGD(
    _FormulaOptimizer,
    formula=formulas.sgd,
    first=lambda group: {"momentum_buffer": 0.0} if group["momentum"] else {},
    arguments=lambda params, lr, momentum=0.0, nesterov=False, weight_decay=0.0: None,
):
    """Stochastic gradient descent, with momentum, which may be Nesterov's."""

    implied: ClassVar[Mapping[str, Any]] = {"dampening": 0.0}

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise `ArgumentError` for values out of range."""
        super().check_options(options)
        if options["nesterov"] and options["momentum"] <= 0:
            raise ArgumentError("Nesterov momentum requires a momentum")


class Adam(
    _FormulaOptimizer,
    formula=formulas.adam,
    first=lambda group: {"exp_avg": 0.0, "exp_avg_sq": 0.0, "step": 0.0},
    arguments=lambda params, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0: None,
):
    """Adam (Kingma and Ba, 2015); `weight_decay` is an L2 penalty."""

    implied: ClassVar[Mapping[str, Any]] = {"amsgrad": False, "decoupled_weight_decay": False}


class AdamW(
    _FormulaOptimizer,
    formula=formulas.adam,
    first=lambda group: {"exp_avg": 0.0, "exp_avg_sq": 0.0, "step": 0.0},
    arguments=lambda params, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2: None,
):
    """Adam with decay of the parameters themselves (Loshchilov and Hutter, 2019)."""

    implied: ClassVar[Mapping[str, Any]] = {"amsgrad": False, "decoupled_weight_decay": True}


class Adagrad(
    _FormulaOptimizer,
    formula=formulas.adagrad,
    first=lambda group: {"sum": 0.0, "step": 0.0},
    arguments=lambda params, lr=1e-2, lr_decay=0.0, eps=1e-10, weight_decay=0.0: None,
):
    """Adagrad (Duchi et al., 2011), with `eps` below the root."""

    implied: ClassVar[Mapping[str, Any]] = {"eps_below_root": True}


class Adadelta(
    _FormulaOptimizer,
    formula=formulas.adadelta,
    first=lambda group: {"square_avg": 0.0, "acc_delta": 0.0, "step": 0.0},
    arguments=lambda params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0: None,
):
    """Adadelta (Zeiler, 2012)."""


class LAMB(
    _FormulaOptimizer,
    formula=formulas.lamb,
    first=lambda group: {"exp_avg": 0.0, "exp_avg_sq": 0.0, "step": 0.0},
    arguments=lambda params, lr, betas=(0.9, 0.999), eps=1e-8, bias_correction=True,
    weight_decay=0.0, always_adapt=False: None,
):  # fmt: skip
    """LAMB (You et al., 2020)."""


class LRScheduler:
    """Base class of schedules: a subclass computes in `get_lr` a rate for each group."""

    base_lrs: list[float]

    def __init__(self, optimizer: Optimizer, current_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(
                f"optimizer argument given to the lr_scheduler should be Optimizer, not "
                f"{type(optimizer).__name__}"
            )
        self.optimizer, self.current_epoch = optimizer, current_epoch
        for i, group in enumerate(optimizer.param_groups):
            if current_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise UnknownKeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an "
                    "optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the attributes from what `state_dict` returned."""
        self.__dict__.update(state_dict)

    @abstractmethod
    def get_lr(self) -> Sequence[float]:
        """Compute the rates of this epoch, one for each group."""
        raise BuildError(f"{type(self).__name__} does not define get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of `epoch`."""
        self.current_epoch = self.current_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch in `milestones`, which increase."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        current_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = list(milestones), gamma
        if self.milestones != sorted(self.milestones):
            raise OptionError(f"Milestones should be a list of increasing integers: {milestones}")
        super().__init__(optimizer, current_epoch)

    def get_lr(self) -> list[float]:
        """Compute the rates of this epoch, one for each group."""
        factor = self.gamma ** bisect_right(self.milestones, self.current_epoch)
        return [base * factor for base in self.base_lrs]


def _gradients(tensors: Any) -> list[Tensor]:
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return [t for t in listed if t.grad is not None]


def clip_grad_norm(tensors: Any, max_norm: float, ord: float = 2.0) -> Any:
    """Scale the gradients of `tensors` by one factor if their norm is above `max_norm`.

    Return the norm before.

    >>> w = megengine.Tensor([3.0, 4.0])
    >>> w.grad = megengine.Tensor([3.0, 4.0])
    >>> norm = megengine.optimizer.clip_grad_norm([w], max_norm=1.0)
    >>> float(norm)
    5.0
    """
    found = _gradients(tensors)
    if not found:
        return np.zeros(())
    with no_grad():
        gradients: list[Any] = [t.grad for t in found]
        norms: list[Any] = [linalg.vector_norm(g, ord=ord) for g in gradients]
        total: Any = linalg.vector_norm(stack(norms), ord=ord)
        factor: Any = minimum(max_norm / (total + 1e-6), 1.0)
        for gradient in gradients:
            gradient.copy_(gradient * astype(factor, gradient.dtype))
    return total


def clip_grad_value(tensors: Any, lower: float, upper: float) -> None:
    """Limit the elements of the gradients of `tensors` to [lower, upper].

    >>> w = megengine.Tensor([3.0])
    >>> w.grad = megengine.Tensor([4.0])
    >>> megengine.optimizer.clip_grad_value([w], -1.0, 1.0)
    >>> float(w.grad)
    1.0
    """
    with no_grad():
        for tensor in _gradients(tensors):
            gradient: Any = tensor.grad
            gradient.copy_(clip(gradient, lower, upper))


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
