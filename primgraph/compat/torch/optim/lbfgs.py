"""L-BFGS by the arguments and states that it has in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primgraph.compat.torch.optim.optimizer import Optimizer
from primgraph.compat.training.groups import FormulaOptimizer
from primgraph.compat.training.lbfgs import Objective, Options, minimize
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, OptionError


class LBFGS(
    FormulaOptimizer,
    Optimizer,
    arguments=lambda params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7,
    tolerance_change=1e-9, history_size=100, line_search_fn=None: None,
):  # fmt: skip
    """Limited-memory BFGS, with a `closure` that computes the loss and the gradients.

    `line_search_fn` is None or "strong_wolfe". All parameters are in one group.

    >>> w = torch.ones(2, requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = torch.sum((w - 3.0) ** 2)
    ...     loss.backward()
    ...     return loss
    >>> float(optimizer.step(closure))
    8.0
    >>> w.detach()
    tensor([3., 3.])
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if len(self.param_groups) != 1:
            raise ArgumentError("LBFGS doesn't support per-parameter options (parameter groups)")
        for options in (self.defaults, self.param_groups[0]):
            if options["max_eval"] is None:
                options["max_eval"] = options["max_iter"] * 5 // 4

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Run up to `max_iter` iterations; return the loss of the first evaluation."""
        if closure is None:
            raise ArgumentError("LBFGS.step takes a closure that computes the loss and gradients")
        group = self.param_groups[0]
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise OptionError("only 'strong_wolfe' is supported as line_search_fn")
        parameters = group["params"]
        state = self.state[parameters[0]]
        memory = {name: _arrays(value) for name, value in state.items()}
        options = Options(
            float(group["lr"]),
            group["max_iter"],
            group["max_eval"],
            group["tolerance_grad"],
            group["tolerance_change"],
            group["history_size"],
            search is not None,
        )
        try:
            with no_grad():
                return minimize(Objective(parameters, closure), memory, options)
        finally:
            family = type(parameters[0]).family
            state.update({name: _tensors(value, family) for name, value in memory.items()})


def _arrays(value: Any) -> Any:
    if isinstance(value, list):
        return [_arrays(v) for v in value]
    return value._array() if isinstance(value, Tensor) else value


def _tensors(value: Any, family: Any) -> Any:
    if isinstance(value, list):
        return [_tensors(v, family) for v in value]
    return family(array_node(value)) if isinstance(value, np.ndarray) else value
