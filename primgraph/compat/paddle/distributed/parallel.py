"""Layers that are trained on several processes in Paddle, and on one here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from primgraph.compat.paddle.nn.layer import Layer


class DataParallel(Layer):
    """A layer that computes as the layer within it: there is one process.

    >>> layer = paddle.DataParallel(paddle.nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['weight', 'bias']
    """

    def __init__(
        self,
        layers: Any,
        strategy: Any = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: float = 1,
        find_unused_parameters: bool = False,
        group: Any = None,
    ) -> None:
        super().__init__()
        self._layers = layers

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the result of the layer."""
        return self._layers(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do nothing: gradients are of one process.

        >>> with paddle.DataParallel(paddle.nn.ReLU()).no_sync():
        ...     pass
        """
        yield

    def scale_loss(self, loss: Any) -> Any:
        """Return the loss."""
        return loss

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the state of the layer, under its own names."""
        found: dict[str, Any] = self._layers.state_dict(*args, **kwargs)
        return found

    def set_state_dict(  # type: ignore[override]
        self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Store a state of the layer, under its own names."""
        return self._layers.set_state_dict(state_dict, *args, **kwargs)

    set_dict = set_state_dict
    load_dict = set_state_dict
