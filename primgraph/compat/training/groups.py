"""Parameter groups: options that may change at any time, and states by parameter."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar

import numpy as np

from primgraph.compat.training.updates import Change, Formula, Numbers, update_recorded
from primgraph.eager.node import array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.types import TensorType

Group = dict[str, Any]

# The value of an option in `defaults` that each group has to give.
required = object()

# States that are one number for each parameter, of float32.
_NUMBERS = ("step", "eta", "mu", "mu_product")
# States that are one element in the dtype of the parameter.
_PRODUCTS = ("beta1_pow", "beta2_pow", "mu_power")


class ParameterGroups:
    """Groups of parameters and their options, with the states of each parameter.

    `param_groups` are dicts, whose options later steps read. `state` has a dict of tensors for
    each parameter.
    """

    defaults: dict[str, Any]
    param_groups: list[Group]
    state: defaultdict[Any, Any]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        if isinstance(params, Tensor):
            raise ArgumentError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {type(params).__name__}",
                hint="put it in a list",
            )
        groups = list(params)
        if not groups:
            raise ArgumentError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Add a group: a dict with `params` and options; the defaults fill in others.

        Raises `ArgumentError` for parameters that are no leaf tensors, or in another group.
        """
        if not isinstance(param_group, dict):
            raise ArgumentError(f"param_group must be a dict, but got {type(param_group).__name__}")
        params, names = _named_parameters(param_group["params"])
        for i, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise ArgumentError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(param).__name__}, element {i}"
                )
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ArgumentError(
                    "can't optimize a non-leaf Tensor",
                    hint="x.detach().requires_grad_() has the same elements and is a leaf",
                )
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, value in self.defaults.items():
            if value is required and name not in param_group:
                raise ArgumentError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, value)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(("param_names" in group) != bool(names) for group in self.param_groups):
            raise ArgumentError("all optimizer param groups should be with/without names")
        if not known.isdisjoint(map(id, params)):
            raise ArgumentError("some parameters appear in more than one parameter group")
        if len({id(p) for p in params}) < len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters", stacklevel=3
            )
        self.param_groups.append(param_group)

    def __getstate__(self) -> dict[str, Any]:
        return {n: getattr(self, n) for n in ("defaults", "state", "param_groups")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # States.

    def state_dict(self) -> dict[str, Any]:
        """Return the states and groups, with numbers in place of the parameters.

        Tensors are those of the optimizer itself, not copies.
        """
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in group["params"]:
                numbers.setdefault(id(parameter), len(numbers))
        groups = []
        for group in self.param_groups:
            places = [numbers[id(p)] for p in group["params"]]
            groups.append({**{k: v for k, v in group.items() if k != "params"}, "params": places})
        state = {numbers.get(id(k), k): v for k, v in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; tensors are copied.

        Raises `ArgumentError` for other numbers of groups or parameters.
        """
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ArgumentError("loaded state dict has a different number of parameter groups")
        sizes = [
            (len(g["params"]), len(s["params"]))
            for g, s in zip(self.param_groups, saved, strict=False)
        ]
        if any(own != other for own, other in sizes):
            raise ArgumentError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        owners: dict[Any, Tensor] = {}
        for group, new in zip(self.param_groups, saved, strict=True):
            owners.update(zip(new["params"], group["params"], strict=True))
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, values in state_dict["state"].items():
            owner = owners.get(key)
            state[key if owner is None else owner] = _cast(owner, values)
        self.__setstate__({"state": state, "param_groups": saved})

    # Steps.

    def update(
        self, formula: Formula, first: Callable[[Group], Mapping[str, float]] | None = None
    ) -> None:
        """Update the parameters that have a gradient by `formula`, all in one kernel.

        `first` returns the initial values of states, for parameters that have none yet.
        """
        caches = self.__dict__.setdefault("_numbers", {})
        for turn in self._turns():
            change = Change()
            for i, parameters in turn.items():
                group, pairs = self.param_groups[i], []
                for parameter in parameters:
                    state = self.state[parameter] if first is not None else {}
                    if first is not None and not state:
                        self.fill_state(parameter, state, first(group))
                    pairs.append((parameter, parameter.grad, state))
                options = self.options_of(group)
                if group.get("differentiable"):
                    update_recorded(formula, pairs, options)
                else:
                    change.update(formula, pairs, options, caches.setdefault(i, Numbers()))
            change.apply()

    def _turns(self) -> list[dict[int, list[Any]]]:
        """Return parameters with a gradient, by group, for one kernel after the other.

        There is one turn, unless parameters share elements, whose updates are sequential.
        """
        turns: list[dict[int, list[Any]]] = [{}]
        storages: set[int] = set()
        for i, group in enumerate(self.param_groups):
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                alias = parameter._alias
                if alias is not None:
                    storage = id(getattr(alias, "storage", alias))
                    if storage in storages:
                        turns.append({})
                        storages.clear()
                    storages.add(storage)
                turns[-1].setdefault(i, []).append(parameter)
        return turns

    def options_of(self, group: Group) -> Mapping[str, Any]:
        """Return the options of a group, by the names that the formula has."""
        return group

    def fill_state(
        self, parameter: Tensor, state: dict[str, Any], first: Mapping[str, float]
    ) -> None:
        """Create states of a parameter from their initial values."""
        for name, value in first.items():
            array = initial_array(name, value, parameter.type)
            state[name] = type(parameter).family(array_node(array))


def initial_array(name: str, value: Any, type: TensorType) -> np.ndarray[Any, Any]:
    """Return the initial elements of a state: one number by name, or as the parameter has.

    A pair of a count and a value is for as many arrays.
    """
    if isinstance(value, tuple):
        return np.full((value[0], *type.shape), value[1], type.dtype)
    if name in _NUMBERS:
        return np.array(value, np.float32)
    if name in _PRODUCTS:
        return np.full((1,), value, type.dtype)
    return np.full(type.shape, complex(value, value) if type.is_complex else value, type.dtype)


def _named_parameters(params: Any) -> tuple[list[Any], list[str]]:
    """Return the parameters of a group as a list, and their names, if they are pairs with names."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise ArgumentError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    listed = list(params)
    names = [item[0] for item in listed if isinstance(item, tuple)]
    if names and len(names) < len(listed):
        raise ArgumentError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    return [item[1] for item in listed] if names else listed, names


def _cast(owner: Tensor | None, value: Any, key: Any = None) -> Any:
    """Copy a loaded state; floats take the dtype of their parameter, except step counts."""
    if isinstance(value, Tensor | np.ndarray):
        if owner is None:
            return value
        array = value.numpy() if isinstance(value, Tensor) else value
        if key != "step" and owner.dtype.kind in "fc":
            array = array.astype(owner.dtype)
        return type(owner).family(array_node(np.array(array)))
    if isinstance(value, Mapping):
        return {k: _cast(owner, v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)([_cast(owner, v) for v in value])
    return value


def _at_least(low: float) -> Callable[[Any], bool]:
    return lambda x: bool(x >= low)


# By name of an option, what an error calls it, and whether a value is valid.
_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "lr": ("learning rate", _at_least(0.0)),
    "betas": ("beta parameter", lambda x: bool(0.0 <= x < 1.0)),
    "eps": ("epsilon value", _at_least(0.0)),
    "rho": ("rho value", lambda x: bool(0.0 <= x <= 1.0)),
    **{
        name: (f"{name} value", _at_least(0.0))
        for name in (
            "alpha", "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay",
            "weight_decay",
        )
    },
}  # fmt: skip


class FormulaOptimizer(ParameterGroups):
    """Optimizer of one formula, whose arguments are options of groups.

    A subclass names the formula, its arguments (the first one is the parameters), and the initial
    states as a function of a group.
    """

    formula: ClassVar[Formula]
    signature: ClassVar[inspect.Signature]
    first: ClassVar[Callable[[Group], Mapping[str, float]] | None] = None
    # Options that are no arguments.
    implied: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(
        cls,
        formula: Formula | None = None,
        arguments: Callable[..., None] | None = None,
        first: Callable[[Group], Mapping[str, float]] | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(**options)
        if formula is not None:
            cls.formula = staticmethod(formula)
        if arguments is not None:
            cls.signature = inspect.signature(arguments)
        if first is not None:
            cls.first = staticmethod(first)

    def __init__(self, *args: Any, **options: Any) -> None:
        bound = self.signature.bind(*args, **options)
        bound.apply_defaults()
        values = dict(bound.arguments)
        params = values.pop(next(iter(values)))
        self.check_options(values)
        super().__init__(params, {**values, **self.implied})

    @classmethod
    def _initial_state(cls, group: Group) -> Mapping[str, float]:
        return {} if cls.first is None else cls.first(group)

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise `ArgumentError` for values out of range."""
        for name, value in options.items():
            check = _RANGES.get(name)
            if check is None or value is required:
                continue
            label, is_valid = check
            values = value if isinstance(value, list | tuple) else (value,)
            for i, item in enumerate(values):
                if not is_valid(item):
                    place = f" at index {i}" if len(values) > 1 else ""
                    raise ArgumentError(f"Invalid {label}{place}: {item!r:.60}")
