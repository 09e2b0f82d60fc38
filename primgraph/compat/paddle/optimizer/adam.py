"""Adam and its variants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.optimizer.base import Group
from primgraph.compat.paddle.optimizer.rules import RuleOptimizer
from primgraph.compat.training import formulas
from primgraph.compat.training.updates import Formula
from primgraph.errors import ArgumentError

_MOMENTS = {"exp_avg": "moment1", "exp_avg_sq": "moment2", "max_exp_avg_sq": "moment2_max"}


_PRODUCTS = {"beta1_pow": "beta1_pow_acc", "beta2_pow": "beta2_pow_acc"}


_BETAS: dict[str, str | tuple[str, ...]] = {"betas": ("beta1", "beta2"), "eps": "epsilon"}


class Adam(RuleOptimizer):
    """Adam (Kingma and Ba, 2015), or AMSGrad; `weight_decay` is added to the gradient.

    All gradients are dense, and all updates are of one kernel: `lazy_mode` and `use_multi_tensor`
    make no difference.

    >>> w = paddle.create_parameter([1], "float32")
    >>> adam = paddle.optimizer.Adam(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.adam)
    layout: ClassVar[Mapping[str, str]] = {**_MOMENTS, **_PRODUCTS}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {**_BETAS, "amsgrad": "amsgrad"}
    constants: ClassVar[Mapping[str, Any]] = {
        "weight_decay": 0.0, "decoupled_weight_decay": False
    }  # fmt: skip

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision,
            beta1=beta1, beta2=beta2, epsilon=epsilon, amsgrad=amsgrad,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        values = {**self._options, **group}
        found = {"exp_avg": 0.0, "exp_avg_sq": 0.0}
        if values.get("amsgrad"):
            found["max_exp_avg_sq"] = 0.0
        return {**found, "beta1_pow": values["beta1"], "beta2_pow": values["beta2"]}


class AdamW(Adam):
    """Adam with decay of the parameters themselves (Loshchilov and Hutter, 2019).

    `apply_decay_param_fun(name)` chooses the parameters that decay, and `lr_ratio(parameter)` is a
    factor of the learning rate.

    >>> w = paddle.create_parameter([1], "float32")
    >>> adam = paddle.optimizer.AdamW(learning_rate=0.1, parameters=[w], weight_decay=0.01)
    """

    decays_parameters: ClassVar[bool] = True
    constants: ClassVar[Mapping[str, Any]] = {"decoupled_weight_decay": True}

    single: ClassVar[Collection[str]] = ("weight_decay", "lr_ratio")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: float = 0.01,
        use_lowprecision_moment: bool = False,
        lr_ratio: Callable[[Any], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        reject_options("AdamW", use_lowprecision_moment=use_lowprecision_moment)
        if isinstance(weight_decay, bool) or not isinstance(weight_decay, int | float):
            raise ArgumentError(f"weight_decay should be int or float, not {weight_decay!r:.60}")
        self._lr_ratio, self._chooses = lr_ratio, apply_decay_param_fun
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision,
            beta1=beta1, beta2=beta2, epsilon=epsilon, amsgrad=amsgrad,
        )  # fmt: skip

    def options(self, group: Group, parameter: Any) -> dict[str, Any]:
        """Return the options of the formula for a parameter of a group, without the rate."""
        found = super().options(group, parameter)
        decays = self._chooses is None or self._chooses(parameter.name)
        decay = float(group["weight_decay"]) if decays else 0.0
        return {**found, "weight_decay": self._rounded("weight_decay", decay, parameter)}

    def rate_factor(self, group: Group, parameter: Any) -> float:
        """Return the factor of the learning rate in a group."""
        ratio = 1.0 if self._lr_ratio is None else float(self._lr_ratio(parameter))
        rounded: float = self._rounded("lr_ratio", ratio, parameter)
        return super().rate_factor(group, parameter) * rounded


class Adamax(RuleOptimizer):
    """Adam with the infinity norm (Kingma and Ba, 2015).

    >>> w = paddle.create_parameter([1], "float32")
    >>> adamax = paddle.optimizer.Adamax(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.adamax)
    layout: ClassVar[Mapping[str, str]] = {
        "exp_avg": "moment", "exp_inf": "inf_norm", "beta1_pow": "beta1_pow_acc",
    }  # fmt: skip
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = _BETAS
    constants: ClassVar[Mapping[str, Any]] = {"weight_decay": 0.0, "eps_of_average": True}

    single: ClassVar[Collection[str]] = ("beta1", "beta2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name,
            beta1=beta1, beta2=beta2, epsilon=epsilon,
        )  # fmt: skip

    def options(self, group: Group, parameter: Any) -> dict[str, Any]:
        """Return the options of the formula for a parameter of a group, without the rate."""
        # The product is a tensor, which has the dtype of the parameter.
        exact = {**self._options, **group}["beta1"]
        return {**super().options(group, parameter), "product_beta": exact}

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        beta = {**self._options, **group}["beta1"]
        return {"exp_avg": 0.0, "exp_inf": 0.0, "beta1_pow": beta}


class Lamb(RuleOptimizer):
    """LAMB (You et al., 2020).

    `exclude_from_weight_decay_fn(parameter)` chooses parameters that do not decay.

    >>> w = paddle.create_parameter([1], "float32")
    >>> lamb = paddle.optimizer.Lamb(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.lamb)
    layout: ClassVar[Mapping[str, str]] = {**_MOMENTS, **_PRODUCTS}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        **_BETAS, "weight_decay": "lamb_weight_decay", "always_adapt": "always_adapt",
    }  # fmt: skip

    single: ClassVar[Collection[str]] = ("lamb_weight_decay", "beta1", "beta2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameters: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Any], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        self._excludes = exclude_from_weight_decay_fn
        self._set_up(
            learning_rate, parameters, None, grad_clip, name, multi_precision,
            lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2, epsilon=epsilon,
            always_adapt=always_adapt,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        values = {**self._options, **group}
        moments = {"exp_avg": 0.0, "exp_avg_sq": 0.0}
        return {**moments, "beta1_pow": values["beta1"], "beta2_pow": values["beta2"]}

    def options(self, group: Group, parameter: Any) -> dict[str, Any]:
        """Return the options of the formula for a parameter of a group, without the rate."""
        found = super().options(group, parameter)
        if self._excludes is not None and self._excludes(parameter):
            found["weight_decay"] = 0.0
        return found


class NAdam(RuleOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    >>> w = paddle.create_parameter([1], "float32")
    >>> nadam = paddle.optimizer.NAdam(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.nadam)
    layout: ClassVar[Mapping[str, str]] = {
        "step": "step", "mu_product": "mu_product", **_MOMENTS
    }  # fmt: skip
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        **_BETAS, "momentum_decay": "momentum_decay"
    }  # fmt: skip
    constants: ClassVar[Mapping[str, Any]] = {
        "weight_decay": 0.0, "decoupled_weight_decay": False
    }  # fmt: skip

    single: ClassVar[Collection[str]] = ("beta1", "beta2", "epsilon", "momentum_decay")

    def __init__(
        self,
        learning_rate: Any = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name,
            beta1=beta1, beta2=beta2, epsilon=epsilon, momentum_decay=momentum_decay,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"step": 0.0, "mu_product": 1.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}


class RAdam(RuleOptimizer):
    """Rectified Adam (Liu et al., 2020).

    >>> w = paddle.create_parameter([1], "float32")
    >>> radam = paddle.optimizer.RAdam(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.radam)
    layout: ClassVar[Mapping[str, str]] = {"step": "step", **_MOMENTS}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = _BETAS
    constants: ClassVar[Mapping[str, Any]] = {
        "weight_decay": 0.0, "decoupled_weight_decay": False
    }  # fmt: skip

    single: ClassVar[Collection[str]] = ("beta1", "beta2", "epsilon")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name,
            beta1=beta1, beta2=beta2, epsilon=epsilon,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"step": 0.0, "exp_avg": 0.0, "exp_avg_sq": 0.0}
