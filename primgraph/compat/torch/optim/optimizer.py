"""Base class of optimizers, with hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from itertools import chain, count
from typing import Any, ClassVar

from primgraph.compat.training.groups import FormulaOptimizer, ParameterGroups
from primgraph.eager.derivatives.differentiable import Hook
from primgraph.eager.derivatives.recording import enable_grad, no_grad
from primgraph.errors import ArgumentError, MissingMethodError

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

_numbers = count()
_all_before: dict[int, Callable[..., Any]] = {}
_all_after: dict[int, Callable[..., Any]] = {}
_KINDS = (
    "step_pre",
    "step_post",
    "state_dict_pre",
    "state_dict_post",
    "load_state_dict_pre",
    "load_state_dict_post",
)


class Optimizer(ParameterGroups):
    """Base class of optimizers: parameter groups, states, hooks.

    A subclass passes its parameters and a dict of default options to `super().__init__`, and
    defines `step`, which reads `self.param_groups` and `self.state`.

    >>> class Descent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.data.add_(p.grad, alpha=-group["lr"])
    >>> w = torch.ones(2, requires_grad=True)
    >>> descent = Descent([w], lr=0.1)
    >>> torch.sum(w * w).backward()
    >>> descent.step()
    >>> w.detach()
    tensor([0.8000, 0.8000])
    """

    _opt_called = False
    _is_stepping = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in vars(cls):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._make_hooks()
        super().__init__(params, defaults)

    def _make_hooks(self) -> None:
        self._hooks: dict[str, dict[int, Callable[..., Any]]] = {kind: {} for kind in _KINDS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_hooks" not in self.__dict__:
            self._make_hooks()
        super().__setstate__(state)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; `closure` computes the loss and the gradients anew."""
        raise MissingMethodError(
            f"{type(self).__name__} does not define step",
            hint="def step(self, closure=None): changes the tensors in self.param_groups",
        )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let no parameter have a gradient; with `set_to_none=False` gradients become zeros."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none:
                    parameter.grad = None
                elif parameter.grad is not None:
                    parameter.grad.detach_().zero_()

    def state_dict(self) -> dict[str, Any]:
        """Return the states and groups, with numbers in place of the parameters.

        Tensors are those of the optimizer itself, not copies.
        """
        for hook in self._hooks["state_dict_pre"].values():
            hook(self)
        found = super().state_dict()
        for hook in self._hooks["state_dict_post"].values():
            changed = hook(self, found)
            found = found if changed is None else changed
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned; tensors are copied.

        Raises `ArgumentError` for other numbers of groups or parameters.
        """
        given: Any = dict(state_dict)
        for hook in self._hooks["load_state_dict_pre"].values():
            changed = hook(self, given)
            given = given if changed is None else changed
        super().load_state_dict(given)
        for hook in self._hooks["load_state_dict_post"].values():
            hook(self)

    # Hooks.

    def _register(self, kind: str, hook: Callable[..., Any], prepend: bool = False) -> Hook:
        return _register_in(self._hooks[kind], hook, prepend)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Hook:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other arguments."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Hook:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Hook:
        """Call `hook(optimizer)` before `state_dict`."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Hook:
        """Call `hook(optimizer, state_dict)` after `state_dict`; it may return another dict."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Hook:
        """Call `hook(optimizer, state_dict)` before loading; it may return another dict."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> Hook:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return self._register("load_state_dict_post", hook, prepend)


def _register_in(
    hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool = False
) -> Hook:
    number = next(_numbers)
    if prepend:
        later = dict(hooks)
        hooks.clear()
        hooks.update({number: hook, **later})
    else:
        hooks[number] = hook
    return Hook(hooks, number)


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Hook:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return _register_in(_all_before, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Hook:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return _register_in(_all_after, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Let `step` call the hooks, unless the step of a subclass calls it."""

    @wraps(step)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._is_stepping:
            return step(self, *args, **kwargs)
        self._opt_called = self._is_stepping = True
        try:
            return _call_with_hooks(self, step, args, kwargs)
        finally:
            self._is_stepping = False

    return call


def _call_with_hooks(self: Optimizer, step: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    # The arguments of hooks begin with the optimizer, as torch wraps the unbound method.
    args = (self, *args)
    for hook in [*_all_before.values(), *self._hooks["step_pre"].values()]:
        changed = hook(self, args, kwargs)
        if changed is not None:
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise ArgumentError(
                    f"a step pre-hook returns None or (new_args, new_kwargs), not {changed!r:.60}"
                )
            args, kwargs = changed
    found = step(*args, **kwargs)
    for hook in chain(list(self._hooks["step_post"].values()), list(_all_after.values())):
        hook(self, args, kwargs)
    return found


class UpdateOptimizer(FormulaOptimizer, Optimizer):
    """Optimizer of one formula, which updates all parameters in one kernel."""

    # Options that say how torch computes, or that make no difference on one processor.
    indifferent: ClassVar[tuple[str, ...]] = ("foreach", "fused", "capturable")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        given = self.defaults
        if given.get("fused") and given.get("differentiable"):
            raise ArgumentError("`fused` does not support `differentiable`")
        if given.get("fused") and given.get("foreach"):
            raise ArgumentError("`fused` and `foreach` cannot be `True` together.")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters that have a gradient.

        `closure` computes the loss and the gradients anew; its result is returned. Pending
        computations, from the parameters to the loss, are computed in the same kernel.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with nullcontext() if self.defaults.get("differentiable") else no_grad():
            self.update(self.formula, self._initial_state)
        return loss
