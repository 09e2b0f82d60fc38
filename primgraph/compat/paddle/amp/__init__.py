"""Mixed precision, which is off, as in Paddle on a processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.errors import OptionError

__all__ = [
    "GradScaler",
    "auto_cast",
    "decorate",
    "is_bfloat16_supported",
    "is_float16_supported",
]


@contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Change nothing: float16 is off on a processor, as in Paddle.

    Raises `OptionError` for bfloat16, which primgraph does not have.

    >>> with paddle.amp.auto_cast():
    ...     x = paddle.ones([2]) * 2
    ...
    >>> x.dtype
    paddle.float32
    """
    if enable and "bfloat16" in str(dtype):
        raise OptionError("auto_cast: primgraph does not have bfloat16", hint="enable=False")
    yield


def decorate(models: Any, optimizers: Any = None, **options: Any) -> Any:
    """Return the models, and the optimizers if there are any, as they are.

    >>> layer = paddle.nn.Linear(2, 1)
    >>> paddle.amp.decorate(layer) is layer
    True
    """
    return models if optimizers is None else (models, optimizers)


def is_float16_supported(device: Any = None) -> bool:
    """Return False.

    >>> paddle.amp.is_float16_supported()
    False
    """
    return False


is_bfloat16_supported = is_float16_supported


class GradScaler:
    """Scaler of losses, which is off on a processor, as in Paddle.

    >>> scaler = paddle.amp.GradScaler()
    >>> scaler.is_enable()
    False
    """

    def __init__(self, enable: bool = True, init_loss_scaling: float = 65536.0, **o: Any) -> None:
        self._scale = init_loss_scaling

    def is_enable(self) -> bool:
        """Return False."""
        return False

    is_use_dynamic_loss_scaling = is_enable

    def get_init_loss_scaling(self) -> float:
        """Return the scale, which is not used."""
        return self._scale

    def scale(self, var: Any) -> Any:
        """Return the loss as it is."""
        return var

    def unscale_(self, optimizer: Any) -> None:
        """Do nothing: the gradients are not scaled."""

    def step(self, optimizer: Any) -> None:
        """Step the optimizer."""
        optimizer.step()

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Minimize by the optimizer, whose gradients are there."""
        return optimizer.step()

    def update(self) -> None:
        """Do nothing: there is no scale."""

    def state_dict(self) -> dict[str, Any]:
        """Return no state."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Do nothing: there is no state."""


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
