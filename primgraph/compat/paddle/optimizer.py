"""Optimizers by the names that they and their arguments have in `paddle.optimizer`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, final

from primgraph import optimizer as pg
from primgraph.compat.paddle.framework import refused
from primgraph.compat.paddle.static import variables_named
from primgraph.ir.signature import checked_methods
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_guard, program_of

Parameters: TypeAlias = Sequence[Variable | str] | None


@checked_methods(late=True)
class Optimizer:
    """An optimizer of primgraph, `rule`, with the `minimize` of Paddle."""

    def __init__(self, rule: pg.Optimizer, parameters: Parameters) -> None:
        self.rule = rule
        self.parameters = parameters

    def get_lr(self) -> float:
        """The learning rate that was given or set last."""
        return self.rule.learning_rate

    def set_lr(self, value: float) -> None:
        """Use another learning rate from the next run on."""
        self.rule.set_learning_rate(value)
        self.rule.learning_rate = float(value)

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameters: Parameters = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Variable], list[tuple[Variable, Variable]]]:
        """Let every run of the program of `loss` take one step that lowers it.

        `startup_program` initialises the optimizer's states. For all else, see the `minimize`
        of `pg.optimizer.Optimizer`.
        """
        with program_guard(program_of(loss), startup_program):
            return self.rule.minimize(
                loss,
                variables_named(loss, self.parameters if parameters is None else parameters),
                variables_named(loss, no_grad_set),
            )


@final
@checked_methods(late=True)
class SGD(Optimizer):
    """`pg.optimizer.SGD`; `grad_clip` is one of primgraph's `clip_by` functions."""

    def __init__(
        self,
        learning_rate: float = 0.001,
        parameters: Parameters = None,
        weight_decay: float | None = None,
        grad_clip: pg.Clip | None = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        refused("SGD", multi_precision=multi_precision)
        rule = pg.SGD(learning_rate, weight_decay=weight_decay or 0.0, grad_clip=grad_clip)
        super().__init__(rule, parameters)


@final
@checked_methods(late=True)
class Adam(Optimizer):
    """`pg.optimizer.Adam`; `grad_clip` is one of primgraph's `clip_by` functions.

    All gradients are dense, and all updates are of one kernel: `lazy_mode` and `use_multi_tensor`
    make no difference.
    """

    def __init__(
        self,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Parameters = None,
        weight_decay: float | None = None,
        grad_clip: pg.Clip | None = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        refused("Adam", multi_precision=multi_precision, amsgrad=amsgrad)
        options: dict[str, Any] = {"weight_decay": weight_decay or 0.0, "grad_clip": grad_clip}
        super().__init__(pg.Adam(learning_rate, beta1, beta2, epsilon, **options), parameters)
