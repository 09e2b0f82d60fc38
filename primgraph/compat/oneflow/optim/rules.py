"""Optimizers of one formula, with the defaults and conventions of OneFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from primgraph.compat.training import formulas
from primgraph.compat.training.groups import Group
from primgraph.eager.tensor import Tensor
from primgraph.errors import OptionError

if TYPE_CHECKING:
    from primgraph.compat.torch.nn.utils.clip_grad import clip_grad_norm_
    from primgraph.compat.torch.optim.lbfgs import LBFGS as LineSearchLBFGS
    from primgraph.compat.torch.optim.optimizer import UpdateOptimizer
else:
    from primgraph.compat.oneflow.nn.utils.clip_grad import clip_grad_norm_
    from primgraph.compat.oneflow.optim.lbfgs import LBFGS as LineSearchLBFGS
    from primgraph.compat.oneflow.optim.optimizer import UpdateOptimizer


class _Optimizer(UpdateOptimizer):
    """Optimizer whose parameters have one step count together.

    Groups with `clip_grad_max_norm` are clipped by `clip_grad`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.defaults.get("contiguous_params"):
            raise OptionError("contiguous_params=True is not supported, leave it out")

    def fill_state(
        self, parameter: Tensor, state: dict[str, Any], first: Mapping[str, float]
    ) -> None:
        """Create states of a parameter; the step count is that of the optimizer."""
        super().fill_state(parameter, state, first)
        if "step" in state:
            state["step"] = self.__dict__.setdefault("_steps", state["step"])

    def clip_grad(self, error_if_nonfinite: bool = False) -> None:
        """Clip the gradients of each group that has a `clip_grad_max_norm`."""
        for group in self.param_groups:
            if group.get("clip_grad_max_norm") is not None:
                clip_grad_norm_(
                    group["params"],
                    group["clip_grad_max_norm"],
                    group.get("clip_grad_norm_type", 2.0),
                    error_if_nonfinite,
                )


def _adam_state(group: Mapping[str, Any]) -> dict[str, float]:
    found = {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}
    return {**found, "max_exp_avg_sq": 0.0} if group.get("amsgrad") else found


class SGD(
    _Optimizer,
    formula=formulas.sgd,
    first=lambda group: {"momentum_buffer": 0.0} if group["momentum"] else {},
    arguments=lambda params, lr=0.001, momentum=0.0, dampening=0.0, weight_decay=0.0,
    nesterov=False, maximize=False, contiguous_params=False, fused=False: None,
):  # fmt: skip
    """Stochastic gradient descent, with momentum, which begins with zeros."""


class Adam(
    _Optimizer,
    formula=formulas.adam,
    first=_adam_state,
    arguments=lambda params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
    amsgrad=False, do_bias_correction=True, contiguous_params=False, fused=False: None,
):  # fmt: skip
    """Adam (Kingma and Ba, 2015), or AMSGrad; `weight_decay` is an L2 penalty."""

    decoupled: ClassVar[bool] = False

    def options_of(self, group: Group) -> Mapping[str, Any]:
        """Return the options of a group, by the names that the formula has."""
        return {
            **group,
            "bias_correction": group["do_bias_correction"],
            "decoupled_weight_decay": self.decoupled,
        }


class AdamW(Adam):
    """Adam with decay of the parameters themselves, which is 0 by default."""

    decoupled: ClassVar[bool] = True


class RMSprop(
    _Optimizer,
    formula=formulas.rmsprop_inner,
    first=lambda group: {
        name: 0.0
        for name, is_there in (
            ("square_avg", True), ("momentum_buffer", group["momentum"] > 0),
            ("grad_avg", group["centered"]),
        )
        if is_there
    },
    arguments=lambda params, lr=0.001, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0.0,
    centered=False, contiguous_params=False: None,
):  # fmt: skip
    """RMSprop (Hinton, 2012), with `eps` below the root."""


class Adagrad(
    _Optimizer,
    formula=formulas.adagrad,
    first=lambda group: {"step": 0.0, "sum": group["initial_accumulator_value"]},
    arguments=lambda params, lr=0.001, lr_decay=0.0, weight_decay=0, initial_accumulator_value=0.0,
    eps=1e-10, contiguous_params=False: None,
):  # fmt: skip
    """Adagrad (Duchi et al., 2011)."""


class Adadelta(
    _Optimizer,
    formula=formulas.adadelta,
    first=lambda group: {"square_avg": 0.0, "acc_delta": 0.0},
    arguments=lambda params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, maximize=False,
    contiguous_params=False: None,
):  # fmt: skip
    """Adadelta (Zeiler, 2012)."""


class LAMB(
    _Optimizer,
    formula=formulas.lamb,
    first=lambda group: {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0},
    arguments=lambda params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, weight_decay=0,
    adam_w_mode=True, do_bias_correction=True, amsgrad=False, contiguous_params=False: None,
):  # fmt: skip
    """LAMB (You et al., 2020); the step is always adapted to the size of a parameter."""

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise for values out of range, and for options that are not supported."""
        super().check_options(options)
        for name, value in (("amsgrad", False), ("adam_w_mode", True)):
            if options[name] is not value:
                raise OptionError(f"LAMB: {name} is {value}, others are not supported")

    def options_of(self, group: Group) -> Mapping[str, Any]:
        """Return the options of a group, by the names that the formula has."""
        return {
            **group, "bias_correction": group["do_bias_correction"], "always_adapt": True
        }  # fmt: skip


class LBFGS(
    LineSearchLBFGS,
    arguments=lambda params, lr=0.001, max_iter=20, max_eval=None, tolerance_grad=1e-7,
    tolerance_change=1e-9, history_size=100, line_search_fn=None, contiguous_params=False: None,
):  # fmt: skip
    """Limited-memory BFGS, with a `closure` that computes the loss and the gradients."""
