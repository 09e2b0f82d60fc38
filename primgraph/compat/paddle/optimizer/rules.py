"""Optimizers of one formula: gradient descent and its variants with adapted rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import numpy as np

from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.optimizer.base import Group, Optimizer
from primgraph.compat.paddle.regularizer import L2Decay
from primgraph.compat.training import formulas
from primgraph.compat.training.updates import Formula
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.types import FLOAT16, FLOAT32


class UnsetOptionError(OptionError, AssertionError):
    """Error for an option that is None; of some optimizers Paddle asserts that it is not."""


class RuleOptimizer(Optimizer):
    """Optimizer whose options, `_options`, groups may replace."""

    # By option of the formula, the names of arguments and keys of groups; and constants.
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {}
    constants: ClassVar[Mapping[str, Any]] = {}
    # Arguments that Paddle keeps in float32 whatever the dtype of a parameter is. Others are
    # rounded to that dtype.
    single: ClassVar[Collection[str]] = ()

    def _set_up(
        self, learning_rate: Any, parameters: Any, weight_decay: Any, grad_clip: Any, name: Any,
        multi_precision: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        for option, value in options.items():
            if value is None:
                raise UnsetOptionError(f"{option} is not set")
            is_valid = _RANGES.get(option)
            if is_valid is not None and not is_valid(value):
                raise ArgumentError(f"Invalid value of {option}: {value!r:.60}")
        self._options = options
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        # Parameters of float32 and float64 have their full precision in any case.
        halves = [p for g in self._groups for p in g["params"] if p.type.dtype == FLOAT16]
        reject_options(type(self).__name__, multi_precision=multi_precision and bool(halves))

    def options(self, group: Group, parameter: Any) -> dict[str, Any]:
        """Return the options of the formula for a parameter of a group, without the rate."""
        values = {**self._options, **group}
        found = dict(self.constants)

        def rounded(name: str) -> Any:
            return self._rounded(name, values[name], parameter)

        for option, names in self.names.items():
            if isinstance(names, str):
                found[option] = rounded(names)
            else:
                found[option] = tuple([rounded(n) for n in names])
        return found

    def _rounded(self, name: str, value: Any, parameter: Any) -> Any:
        """Return the value of an argument, rounded as Paddle does for a parameter."""
        if not isinstance(value, float):
            return value
        is_single = name in self.single or parameter.type.dtype == FLOAT32
        return float(np.float32(value)) if is_single else value


_RANGES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("beta1", "beta2"), lambda x: 0 <= x < 1),
    **dict.fromkeys(("epsilon", "momentum", "rho", "momentum_decay"), lambda x: x >= 0),
}


class SGD(RuleOptimizer):
    """Stochastic gradient descent, `w - learning_rate * g`.

    >>> w = paddle.create_parameter([1], "float32")
    >>> sgd = paddle.optimizer.SGD(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.sgd)
    constants: ClassVar[Mapping[str, Any]] = {
        "momentum": 0.0, "dampening": 0.0, "weight_decay": 0.0, "nesterov": False,
    }  # fmt: skip

    def __init__(
        self,
        learning_rate: Any = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        self._set_up(learning_rate, parameters, weight_decay, grad_clip, name, multi_precision)


class Momentum(RuleOptimizer):
    """Gradient descent with momentum, which may be Nesterov's.

    >>> w = paddle.create_parameter([1], "float32")
    >>> momentum = paddle.optimizer.Momentum(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.sgd)
    layout: ClassVar[Mapping[str, str]] = {"momentum_buffer": "velocity"}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        "momentum": "momentum",
        "nesterov": "use_nesterov",
    }
    constants: ClassVar[Mapping[str, Any]] = {"dampening": 0.0, "weight_decay": 0.0}

    single: ClassVar[Collection[str]] = ("momentum",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        momentum: float = 0.9,
        parameters: Any = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        self._rescale_grad = rescale_grad
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision,
            momentum=momentum, use_nesterov=bool(use_nesterov),
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"momentum_buffer": 0.0}

    def decay_of(self, group: Group) -> Any:
        """Return the rule of the weight decay of a group, whose L2 coefficient is a float32."""
        decay = super().decay_of(group)
        return L2Decay(float(np.float32(decay._coeff))) if isinstance(decay, L2Decay) else decay

    def prepared(self, group: Group, pairs: Any) -> Any:
        """Clip the gradients, add the weight decay, and rescale."""
        found = super().prepared(group, pairs)
        factor = group.get("rescale_grad", self._rescale_grad)
        return found if factor == 1.0 else [(p, g * factor) for p, g in found]


class Adagrad(RuleOptimizer):
    """Adagrad (Duchi et al., 2011).

    >>> w = paddle.create_parameter([1], "float32")
    >>> adagrad = paddle.optimizer.Adagrad(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.adagrad)
    layout: ClassVar[Mapping[str, str]] = {"sum": "moment"}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {"eps": "epsilon"}
    constants: ClassVar[Mapping[str, Any]] = {"lr_decay": 0.0, "weight_decay": 0.0}

    single: ClassVar[Collection[str]] = ("epsilon",)

    def __init__(
        self,
        learning_rate: Any,
        epsilon: float = 1e-6,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name,
            epsilon=epsilon, initial_accumulator_value=initial_accumulator_value,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"sum": {**self._options, **group}["initial_accumulator_value"]}


class Adadelta(RuleOptimizer):
    """Adadelta (Zeiler, 2012).

    >>> w = paddle.create_parameter([1], "float32")
    >>> adadelta = paddle.optimizer.Adadelta(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.adadelta)
    layout: ClassVar[Mapping[str, str]] = {
        "square_avg": "_avg_squared_grad", "acc_delta": "_avg_squared_update",
    }  # fmt: skip
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {"eps": "epsilon", "rho": "rho"}
    constants: ClassVar[Mapping[str, Any]] = {"weight_decay": 0.0}

    single: ClassVar[Collection[str]] = ("epsilon", "rho")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name, epsilon=epsilon, rho=rho
        )

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"square_avg": 0.0, "acc_delta": 0.0}


class RMSProp(RuleOptimizer):
    """RMSProp (Hinton, 2012), with `epsilon` below the root.

    >>> w = paddle.create_parameter([1], "float32")
    >>> rmsprop = paddle.optimizer.RMSProp(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.rmsprop_inner)
    layout: ClassVar[Mapping[str, str]] = {
        "momentum_buffer": "momentum", "square_avg": "mean_square", "grad_avg": "mean_grad",
    }  # fmt: skip
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        "eps": "epsilon", "alpha": "rho", "momentum": "momentum", "centered": "centered",
    }  # fmt: skip
    constants: ClassVar[Mapping[str, Any]] = {"weight_decay": 0.0}

    single: ClassVar[Collection[str]] = ("rho", "epsilon", "momentum")

    def __init__(
        self,
        learning_rate: Any,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name,
            rho=rho, epsilon=epsilon, momentum=momentum, centered=centered,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"momentum_buffer": 0.0, "square_avg": 0.0, "grad_avg": 0.0}


class ASGD(RuleOptimizer):
    """Stochastic average gradient of `batch_num` batches, which take turns.

    >>> w = paddle.create_parameter([1], "float32")
    >>> asgd = paddle.optimizer.ASGD(learning_rate=0.1, batch_num=2, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.average_gradient)
    layout: ClassVar[Mapping[str, str]] = {"total": "d", "gradients": "y", "step": "m"}

    def __init__(
        self,
        learning_rate: Any = 0.001,
        batch_num: int = 1,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if not batch_num > 0:
            raise ArgumentError(f"batch_num should be greater than 0, not {batch_num!r:.60}")
        self._set_up(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision,
            batch_num=batch_num,
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, Any]:
        """Return the initial values of the states that exist before the first step."""
        return {"total": 0.0, "gradients": (self._options["batch_num"], 0.0), "step": 0.0}


class Rprop(RuleOptimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993).

    >>> w = paddle.create_parameter([1], "float32")
    >>> rprop = paddle.optimizer.Rprop(learning_rate=0.1, parameters=[w])
    """

    formula: ClassVar[Formula] = staticmethod(formulas.rprop)
    layout: ClassVar[Mapping[str, str]] = {"prev": "prevs", "step_size": "learning_rates"}
    names: ClassVar[Mapping[str, str | tuple[str, ...]]] = {
        "etas": "etas",
        "step_sizes": "learning_rate_range",
    }

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_range: tuple[float, float] = (1e-5, 50),
        parameters: Any = None,
        etas: tuple[float, float] = (0.5, 1.2),
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        low, high = learning_rate_range
        if not 0.0 < low <= learning_rate <= high:
            raise ArgumentError(
                "'0.0 < learning_rate_range[0] <= learning_rate <= learning_rate_range[1]' must be "
                "true"
            )
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentError("'0.0 < etas[0] < 1.0 < etas[1]' must be true")
        self._set_up(
            learning_rate, parameters, None, grad_clip, name, multi_precision,
            etas=tuple(etas), learning_rate_range=(low, high),
        )  # fmt: skip

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {"prev": 0.0, "step_size": self.get_lr()}
