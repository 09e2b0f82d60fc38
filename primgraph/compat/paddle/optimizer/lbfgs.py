"""L-BFGS by the arguments that it has in Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from primgraph.compat.paddle.optimizer.base import Optimizer
from primgraph.compat.training.lbfgs import Objective, Options, minimize
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import MissingMethodError, OptionError


class LBFGS(Optimizer):
    """Limited-memory BFGS, with a `closure` that computes the loss and the gradients.

    `line_search_fn` is None or "strong_wolfe".

    >>> w = paddle.create_parameter([2], "float32")
    >>> lbfgs = paddle.optimizer.LBFGS(parameters=[w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     lbfgs.clear_grad()
    ...     loss = paddle.sum((w - 3.0) ** 2)
    ...     loss.backward()
    ...     return loss
    >>> loss = lbfgs.step(closure)
    >>> w.numpy().round(3)
    array([3., 3.], dtype=float32)
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        self.learning_rate, self.max_iter = learning_rate, max_iter
        self.max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        self.state: dict[str, Any] = {}
        super().__init__(1.0, parameters, weight_decay, grad_clip, name)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to `max_iter` iterations; return the loss of the first evaluation."""
        if closure is None:
            raise OptionError("LBFGS.step takes a closure that computes the loss and gradients")
        if self.line_search_fn not in (None, "strong_wolfe"):
            raise OptionError("only 'strong_wolfe' is supported as line_search_fn")
        options = Options(
            float(self.learning_rate),
            self.max_iter,
            self.max_eval,
            self.tolerance_grad,
            self.tolerance_change,
            self.history_size,
            self.line_search_fn is not None,
        )
        parameters = self._groups[-1]["params"]
        with no_grad():
            return minimize(Objective(parameters, closure), self.state, options)

    def state_dict(self) -> dict[str, Any]:
        """Return what the next step goes on from."""
        return {"state": dict(self.state)}

    def minimize(self, *args: Any, **options: Any) -> NoReturn:
        """Raise: there is no closure."""
        raise MissingMethodError(
            "LBFGS optimizer does not use this way to minimize loss", hint="call step(closure)"
        )
