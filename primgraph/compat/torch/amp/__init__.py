"""Mixed precision, which is off: the processor computes in float32 and float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from primgraph.compat.absent import absent
from primgraph.compat.torch import framework
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import OptionError

__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]


class autocast:
    """Context, or decorator, in which torch computes in half precision.

    Here it is off: `enabled=False`, and devices that there are not, change nothing, as in torch.
    Raises `OptionError` if it is enabled on the processor: torch computes in bfloat16 there, which
    primgraph does not have.

    >>> with torch.autocast("cpu", enabled=False):
    ...     torch.ones(2) * 2
    ...
    tensor([2., 2.])
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        framework.device(device_type)
        if enabled and device_type == "cpu" and dtype != framework.float32:
            raise OptionError(
                "autocast on the CPU computes in bfloat16 or float16: operations compute in the "
                "dtypes of their operands, and there is no bfloat16",
                hint="torch.autocast('cpu', enabled=False) computes in the dtypes of the tensors",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        """Leave the context."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return call


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Return False.

    >>> torch.is_autocast_enabled()
    False
    """
    return False


class GradScaler:
    """Scaler of losses, and of gradients before steps of an optimizer.

    It is off on CUDA. On the processor losses are multiplied by a scale, and steps with gradients
    that are not finite are left out, as in torch.

    >>> scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(torch.ones(1))
    tensor([4.])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled and device == "cpu"
        self._scale, self._streak = init_scale, 0
        self._factors = growth_factor, backoff_factor
        self._interval = growth_interval
        # Whether all gradients are finite, by the ids of optimizers since the last update.
        self._finite: dict[int, bool] = {}

    def is_enabled(self) -> bool:
        """Return whether losses are scaled."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """Multiply a loss, or several, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)(self.scale(x) for x in outputs)
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale."""
        if not self._enabled:
            return
        finite = True
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(1.0 / self._scale)
                        finite = finite and bool(np.isfinite(np.asarray(p.grad)).all())
        self._finite[id(optimizer)] = finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step the optimizer if all gradients are finite."""
        if self._enabled and id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        if self._finite.get(id(optimizer), True):
            return optimizer.step(*args, **kwargs)
        return None

    def update(self, new_scale: float | None = None) -> None:
        """Let the scale grow after many good steps, and shrink after a bad one."""
        if not self._enabled:
            return
        growth, backoff = self._factors
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not all(self._finite.values()):
            self._scale, self._streak = self._scale * backoff, 0
        else:
            self._streak += 1
            if self._streak == self._interval:
                self._scale, self._streak = self._scale * growth, 0
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the state, for `load_state_dict`."""
        if not self._enabled:
            return {}
        growth, backoff = self._factors
        return {
            "scale": self._scale,
            "growth_factor": growth,
            "backoff_factor": backoff,
            "growth_interval": self._interval,
            "_growth_tracker": self._streak,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        if self._enabled:
            self._scale, self._streak = state_dict["scale"], state_dict["_growth_tracker"]
            self._factors = state_dict["growth_factor"], state_dict["backoff_factor"]
            self._interval = state_dict["growth_interval"]


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
