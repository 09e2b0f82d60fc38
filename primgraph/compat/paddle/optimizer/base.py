"""Base class of optimizers, in both modes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from primgraph.compat.paddle.framework import builds_program, reject_options
from primgraph.compat.paddle.nn.clip import ClipGradBase
from primgraph.compat.paddle.optimizer.lr import LRScheduler
from primgraph.compat.paddle.optimizer.recorded import RecordedUpdate
from primgraph.compat.paddle.optimizer.states import StateDicts
from primgraph.compat.paddle.regularizer import L2Decay, WeightDecayRegularizer
from primgraph.compat.paddle.static.backward import append_backward
from primgraph.compat.training.groups import initial_array
from primgraph.compat.training.updates import Change, Formula, Numbers
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, CheckError, MissingMethodError
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, current_program

Pair: TypeAlias = tuple[Any, Any]
Group: TypeAlias = dict[str, Any]


class MissingParameters(ArgumentError, AttributeError):
    """Error for an optimizer of dynamic mode without parameters."""


class Optimizer(StateDicts):
    """Base class of optimizers.

    `learning_rate` is a float or a schedule of `paddle.optimizer.lr`. `parameters` are tensors, or
    dicts with `params` and options of a group, of which `learning_rate` is a factor.
    `weight_decay` is a float, for L2, or a rule of `paddle.regularizer`, and `grad_clip` a
    `paddle.nn.ClipGradBy...`.

    Subclasses define `formula`, the `layout` of its states, from names in the formula to those in
    state dicts, and `options` and `first` of a group.

    >>> w = paddle.create_parameter([1], "float32")
    >>> sgd = paddle.optimizer.SGD(learning_rate=0.1, parameters=[w])
    >>> sgd.get_lr()
    0.1
    """

    formula: ClassVar[Formula]
    layout: ClassVar[Mapping[str, str]] = {}
    # Whether the formula has the weight decay of the parameters themselves.
    decays_parameters: ClassVar[bool] = False

    def __init__(
        self,
        learning_rate: Any,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: ClipGradBase | None = None,
        name: str | None = None,
    ) -> None:
        listed = _listed(parameters)
        if not isinstance(learning_rate, float | LRScheduler):
            raise ArgumentError(
                f"learning rate should be float or LRScheduler, got {type(learning_rate).__name__}"
            )
        if not isinstance(grad_clip, ClipGradBase | None):
            raise ArgumentError(
                f"grad_clip is a paddle.nn.ClipGradBy... object, not {grad_clip!r:.60}"
            )
        self.regularization = as_decay(weight_decay)
        self._learning_rate, self._grad_clip, self._name = learning_rate, grad_clip, name
        self._parameter_list = listed
        self._states: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self._numbers: dict[Any, Numbers] = {}
        self._recorded: RecordedUpdate | None = None
        defaults = {"weight_decay": weight_decay, "grad_clip": grad_clip}
        self._groups: list[Group] = [{"params": listed or [], **defaults}]
        if listed and isinstance(listed[0], dict):
            self._groups = []
            for group in listed:
                self._add_param_group({**defaults, **group})

    @property
    def _param_groups(self) -> Any:
        """The parameters, or the groups where there are some."""
        listed = self._parameter_list
        return self._groups if listed and isinstance(listed[0], dict) else listed

    def _add_param_group(self, param_group: Group) -> None:
        if "params" not in param_group:
            raise CheckError("params should be set in parameters of a group")
        params = param_group["params"]
        if isinstance(params, set):
            raise ArgumentError("optimizer parameters are ordered: give a list, not a set")
        params = [params] if isinstance(params, Tensor | Variable) else list(params)
        known = {id(p) for group in self._groups for p in group["params"]}
        if not known.isdisjoint(map(id, params)):
            raise ArgumentError("some parameters appear in more than one parameter group")
        self._groups.append({**param_group, "params": params})

    # Learning rate.

    def get_lr(self) -> float:
        """Return the learning rate, or what the schedule gives now."""
        rate = self._learning_rate
        return rate() if isinstance(rate, LRScheduler) else rate

    def set_lr(self, value: float) -> None:
        """Use another learning rate. Raises `BuildError` where a schedule gives it."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ArgumentError(f"the learning rate is a float, not {value!r:.60}")
        if isinstance(self._learning_rate, LRScheduler):
            raise BuildError(
                "optimizer's learning rate can't be LRScheduler when invoke this API, because this "
                "will lead to conflict.",
                hint="step the scheduler, or use set_lr_scheduler",
            )
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Use a schedule from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise ArgumentError(f"a schedule is an LRScheduler, not {scheduler!r:.60}")
        self._learning_rate = scheduler

    # Steps.

    def options(self, group: Group, parameter: Any) -> dict[str, Any]:
        """Return the options of the formula for a parameter of a group, without the rate."""
        raise MissingMethodError(
            'Class "Optimizer" cannot be used directly as an optimizer, please use its subclasses '
            'such as "Adam"'
        )

    def first(self, group: Group) -> dict[str, float]:
        """Return the initial values of the states that exist before the first step."""
        return {}

    def prepared(self, group: Group, pairs: Sequence[Pair]) -> list[Pair]:
        """Clip the gradients, and add the weight decay."""
        clip = group["grad_clip"]
        found = list(pairs) if clip is None else clip(pairs)
        default = None if self.decays_parameters else self.decay_of(group)
        decayed = []
        for parameter, gradient in found:
            decay = getattr(parameter, "regularizer", None) or default
            if decay is not None:
                gradient = gradient + decay(parameter, gradient)
            decayed.append((parameter, gradient))
        return decayed

    def decay_of(self, group: Group) -> Callable[..., Any] | None:
        """Return the rule of the weight decay of a group, None for none."""
        return as_decay(group["weight_decay"])

    def parts(
        self, group: Group, pairs: Sequence[Pair]
    ) -> list[tuple[tuple[Any, ...], dict[str, Any], list[Pair]]]:
        """Split pairs by the options of their parameters; each part has a key and its options."""
        found: dict[tuple[Any, ...], tuple[dict[str, Any], list[Pair]]] = {}
        for parameter, gradient in pairs:
            options = self.options(group, parameter)
            attributes = getattr(parameter, "optimize_attr", None) or {}
            options["factor"] = attributes.get("learning_rate", 1.0) * self.rate_factor(
                group, parameter
            )
            key = tuple(sorted(options.items()))
            found.setdefault(key, (options, []))[1].append((parameter, gradient))
        return [(key, options, chosen) for key, (options, chosen) in found.items()]

    def rate_factor(self, group: Group, parameter: Any) -> float:
        """Return the factor of the learning rate in a group."""
        return float(group.get("learning_rate", 1.0))

    def step(self) -> None:
        """Change the parameters that have a gradient, all in one kernel."""
        change = Change()
        with no_grad():
            for i, group in enumerate(self._groups):
                pairs = [
                    (p, p.grad) for p in group["params"] if p.grad is not None and p.requires_grad
                ]
                for key, options, part in self.parts(group, self.prepared(group, pairs)):
                    rate = self.get_lr() * options.pop("factor")
                    numbers = self._numbers.setdefault((i, key), Numbers())
                    triples = [(p, g, self._state(group, p)) for p, g in part]
                    change.update(type(self).formula, triples, {**options, "lr": rate}, numbers)
            change.apply()

    def _state(self, group: Group, parameter: Tensor) -> dict[str, Any]:
        state = self._states[parameter]
        for name, value in self.first(group).items():
            if name not in state:
                array = initial_array(name, value, parameter.type)
                state[name] = type(parameter).family(array_node(array))
        return state

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Let gradients be zeros, or with `set_to_zero=False` None."""
        for group in self._groups:
            for parameter in group["params"]:
                if parameter.requires_grad:
                    parameter.clear_gradient(set_to_zero)

    clear_gradients = clear_grad

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let gradients be None, or zeros."""
        self.clear_grad(set_to_zero=not set_to_none)

    def backward(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[Pair]:
        """Return pairs of a parameter and its gradient, which a tensor's `backward` computed."""
        reject_options("backward", callbacks=callbacks)
        if not isinstance(loss, Tensor):
            return append_backward(loss, parameters, no_grad_set)
        listed = parameters or [p for group in self._groups for p in group["params"]]
        return [(p, p.grad) for p in listed if p.grad is not None and p.requires_grad]

    def minimize(
        self,
        loss: Any,
        startup_program: Program | None = None,
        parameters: Any = None,
        no_grad_set: Collection[Any] | None = None,
    ) -> tuple[Any, list[Pair]]:
        """Let every run of the program of `loss` take one step that lowers it.

        `startup_program` initialises the optimizer's states. Raises what `minimize` of a
        `pg.optimizer.Optimizer` does. For a tensor it is `step`, after its `backward`.
        """
        if isinstance(loss, Tensor):
            pairs = self.backward(loss, parameters=parameters)
            self.step()
            return [], pairs
        return self._record().minimize_in(loss, startup_program, parameters, no_grad_set)

    def _record(self) -> RecordedUpdate:
        if self._recorded is None:
            self._recorded = RecordedUpdate(self)
        return self._recorded


def _listed(parameters: Any) -> list[Any] | None:
    """Return the parameters as a list."""
    if parameters is None:
        # Programs may be built in dynamic mode, too.
        if not (builds_program() or current_program().parameters()):
            raise MissingParameters(
                "parameters argument given to the Optimizer should not be None in dygraph mode.",
                hint="give parameters=layer.parameters()",
            )
        return None
    if isinstance(parameters, Tensor | Variable | dict):
        raise ArgumentError(
            "`parameters` argument given to the optimizer should be an iterable of paddle Tensors, "
            f"but got argument type is {type(parameters).__name__}",
            hint="put it in a list",
        )
    return list(parameters)


def as_decay(weight_decay: Any) -> Callable[..., Any] | None:
    """Return the rule of a weight decay, None for none."""
    if isinstance(weight_decay, int | float):
        return L2Decay(float(weight_decay)) if weight_decay else None
    if not isinstance(weight_decay, WeightDecayRegularizer | None):
        raise ArgumentError(
            f"weight_decay is a float or one of paddle.regularizer, not {weight_decay!r:.60}"
        )
    return weight_decay
