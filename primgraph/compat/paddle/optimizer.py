"""Optimizers by the names that they and their arguments have in `paddle.optimizer`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, final

from primgraph import optimizer as pg
from primgraph.compat import adam as compat
from primgraph.compat.absent import absent
from primgraph.compat.paddle.framework import reject_options
from primgraph.compat.paddle.static import variables_named
from primgraph.eager.tensor import Tensor
from primgraph.ir.frontend.signature import checked_methods
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_guard, program_of

Parameters: TypeAlias = Sequence[Any] | None


def _tensors(parameters: Any) -> list[Tensor] | None:
    """The parameters, if these are tensors."""
    if isinstance(parameters, list | tuple) and all(isinstance(p, Tensor) for p in parameters):
        return list(parameters) or None
    return None


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

    def step(self) -> None:
        """Change the parameters, tensors that this was made for, by their gradients."""
        self.rule.step()

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Let the parameters have no gradient, which counts as zeros."""
        self.rule.clear_grad()

    def minimize(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Parameters = None,
        no_grad_set: Collection[Variable | str] | None = None,
    ) -> tuple[list[Any], list[tuple[Any, Any]]]:
        """Let every run of the program of `loss` take one step that lowers it.

        `startup_program` initialises the optimizer's states. For all else, see the `minimize`
        of `pg.optimizer.Optimizer`. For a tensor it is `step`, after its `backward`.
        """
        if isinstance(loss, Tensor):
            tensors = _tensors(self.parameters if parameters is None else parameters) or []
            self.rule.step()
            return [], [(p, p.grad) for p in tensors]
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
        reject_options("SGD", multi_precision=multi_precision)
        rule = pg.SGD(
            learning_rate,
            parameters=_tensors(parameters),
            weight_decay=weight_decay or 0.0,
            grad_clip=grad_clip,
        )
        super().__init__(rule, parameters)


@final
@checked_methods(late=True)
class Adam(Optimizer):
    """Adam, with `epsilon` and step counts as Paddle has them.

    `grad_clip` is one of primgraph's `clip_by` functions.
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
        reject_options("Adam", multi_precision=multi_precision, amsgrad=amsgrad)
        options: dict[str, Any] = {
            "parameters": _tensors(parameters),
            "weight_decay": weight_decay or 0.0,
            "grad_clip": grad_clip,
        }
        rule = compat.Adam(learning_rate, beta1, beta2, epsilon, **options)
        super().__init__(rule, parameters)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
