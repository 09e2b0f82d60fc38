"""Optimizers of one formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from primgraph.compat.torch.optim.optimizer import UpdateOptimizer
from primgraph.compat.training import formulas
from primgraph.errors import ArgumentError, OptionError


def _adam_state(group: Mapping[str, Any]) -> dict[str, float]:
    found = {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}
    return {**found, "max_exp_avg_sq": 0.0} if group.get("amsgrad") else found


def _rmsprop_state(group: Mapping[str, Any]) -> dict[str, float]:
    found = {"step": 0.0, "square_avg": 0.0}
    if group["momentum"] > 0:
        found["momentum_buffer"] = 0.0
    return {**found, "grad_avg": 0.0} if group["centered"] else found


class SGD(
    UpdateOptimizer,
    formula=formulas.sgd,
    first=lambda group: {},
    arguments=lambda params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
    maximize=False, foreach=None, differentiable=False, fused=None: None,
):  # fmt: skip
    """Stochastic gradient descent, with momentum, which may be Nesterov's.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.1)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8000, 0.8000])
    """

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        super().check_options(options)
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise ArgumentError("Nesterov momentum requires a momentum and zero dampening")


class Adam(
    UpdateOptimizer,
    formula=formulas.adam,
    first=_adam_state,
    arguments=lambda params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False,
    *, foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
    decoupled_weight_decay=False: None,
):  # fmt: skip
    """Adam (Kingma and Ba, 2015), or AMSGrad; `weight_decay` is an L2 penalty.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.1)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.9000, 0.9000])
    """


class AdamW(
    Adam,
    arguments=lambda params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2,
    amsgrad=False, *, maximize=False, foreach=None, capturable=False, differentiable=False,
    fused=None: None,
):  # fmt: skip
    """Adam with decay of the parameters themselves (Loshchilov and Hutter, 2019).

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> torch.sum(w * w).backward()
    >>> optimizer.step()
    >>> w.detach()
    tensor([0.8500, 0.8500])
    """

    implied: ClassVar[Mapping[str, Any]] = {"decoupled_weight_decay": True}


class NAdam(
    UpdateOptimizer,
    formula=formulas.nadam,
    first=lambda group: {"step": 0.0, "mu_product": 1.0, "exp_avg": 0.0, "exp_avg_sq": 0.0},
    arguments=lambda params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
    momentum_decay=4e-3, decoupled_weight_decay=False, *, foreach=None, maximize=False,
    capturable=False, differentiable=False: None,
):  # fmt: skip
    """Adam with Nesterov momentum (Dozat, 2016).

    >>> optimizer = torch.optim.NAdam([torch.ones(2, requires_grad=True)], lr=0.1)
    """


class RAdam(
    UpdateOptimizer,
    formula=formulas.radam,
    first=lambda group: {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0},
    arguments=lambda params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
    decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
    differentiable=False: None,
):  # fmt: skip
    """Rectified Adam (Liu et al., 2020).

    >>> optimizer = torch.optim.RAdam([torch.ones(2, requires_grad=True)], lr=0.1)
    """


class Adamax(
    UpdateOptimizer,
    formula=formulas.adamax,
    first=lambda group: {"step": 0.0, "exp_avg": 0.0, "exp_inf": 0.0},
    arguments=lambda params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None,
    *, maximize=False, differentiable=False, capturable=False: None,
):  # fmt: skip
    """Adam with the infinity norm (Kingma and Ba, 2015).

    >>> optimizer = torch.optim.Adamax([torch.ones(2, requires_grad=True)], lr=0.1)
    """


class RMSprop(
    UpdateOptimizer,
    formula=formulas.rmsprop,
    first=_rmsprop_state,
    arguments=lambda params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0,
    centered=False, capturable=False, foreach=None, maximize=False, differentiable=False: None,
):  # fmt: skip
    """RMSprop (Hinton, 2012), with `eps` added to the root.

    >>> optimizer = torch.optim.RMSprop([torch.ones(2, requires_grad=True)], lr=0.1)
    """


class Adagrad(
    UpdateOptimizer,
    formula=formulas.adagrad,
    first=lambda group: {"step": 0.0, "sum": group["initial_accumulator_value"]},
    arguments=lambda params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0,
    eps=1e-10, foreach=None, *, maximize=False, differentiable=False, fused=None: None,
):  # fmt: skip
    """Adagrad (Duchi et al., 2011). The states exist from the beginning.

    >>> optimizer = torch.optim.Adagrad([torch.ones(2, requires_grad=True)], lr=0.1)
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.fill_state(parameter, self.state[parameter], self._initial_state(group))


class Adadelta(
    UpdateOptimizer,
    formula=formulas.adadelta,
    first=lambda group: {"step": 0.0, "square_avg": 0.0, "acc_delta": 0.0},
    arguments=lambda params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *,
    capturable=False, maximize=False, differentiable=False: None,
):  # fmt: skip
    """Adadelta (Zeiler, 2012).

    >>> optimizer = torch.optim.Adadelta([torch.ones(2, requires_grad=True)])
    """


class Rprop(
    UpdateOptimizer,
    formula=formulas.rprop,
    first=lambda group: {"step": 0.0, "prev": 0.0, "step_size": group["lr"]},
    arguments=lambda params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), *, capturable=False,
    foreach=None, maximize=False, differentiable=False: None,
):  # fmt: skip
    """Resilient backpropagation (Riedmiller and Braun, 1993).

    >>> optimizer = torch.optim.Rprop([torch.ones(2, requires_grad=True)])
    """

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        super().check_options(options)
        low, high = options["etas"]
        if not 0.0 < low < 1.0 < high:
            raise ArgumentError(f"Invalid eta values: {low!r:.40}, {high!r:.40}")


class ASGD(
    UpdateOptimizer,
    formula=formulas.asgd,
    first=lambda group: {"step": 0.0, "eta": group["lr"], "mu": 1.0, "ax": 0.0},
    arguments=lambda params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None,
    maximize=False, differentiable=False, capturable=False: None,
):  # fmt: skip
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    >>> optimizer = torch.optim.ASGD([torch.ones(2, requires_grad=True)])
    """


class SparseAdam:
    """Adam for sparse gradients, which primgraph does not have: an `OptionError`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise OptionError(
            "SparseAdam does not support dense gradients, and all gradients of primgraph are "
            "dense: use Adam"
        )
