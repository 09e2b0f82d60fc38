"""Hooks of modules: around `forward`, in `backward`, and around state dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias, final
from weakref import ref

from primgraph.custom.function import Function
from primgraph.eager.derivatives import recording
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle

# Hooks by number: the function, and an option such as whether it takes keyword arguments.
Table: TypeAlias = dict[int, tuple[Callable[..., Any], Any]]

_numbers = count()
# Hooks of all modules, by kind.
everywhere: dict[str, Table] = {}


@final
class RemovableHandle:
    """Handle that removes a registered hook, also at the end of a `with` block.

    >>> layer = torch.nn.ReLU()
    >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
    >>> layer(torch.zeros(1))
    tensor([1.])
    >>> handle.remove()
    >>> layer(torch.zeros(1))
    tensor([0.])
    """

    def __init__(self, hooks: dict[str, Table], kind: str) -> None:
        self.id = next(_numbers)
        self._kind = kind
        self._table = hooks.setdefault(kind, {})

    def remove(self) -> None:
        """Remove the hook."""
        self._table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __getstate__(self) -> dict[str, Any]:
        return {"id": self.id, "_kind": self._kind, "_table": {}}


def add_hook(
    hooks: dict[str, Table], kind: str, hook: Any, option: Any = False, prepend: bool = False
) -> RemovableHandle:
    """Add a hook of a kind to `hooks`, before the others if `prepend`, and return its handle."""
    if not callable(hook):
        raise ArgumentError(f"a hook is a function, not {hook!r:.60}")
    handle = RemovableHandle(hooks, kind)
    table = hooks[kind]
    others = dict(table) if prepend else {}
    for number in others:
        del table[number]
    table[handle.id] = (hook, option)
    table.update(others)
    return handle


def hooks_of(module: Any, kind: str) -> Iterator[tuple[Callable[..., Any], Any]]:
    """Yield the hooks of a kind of all modules, then those of `module`."""
    for hooks in (everywhere, module._hooks):
        yield from tuple(hooks.get(kind, {}).values())


class Hooked:
    """Methods of modules that register hooks around calls."""

    _hooks: dict[str, Table]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; its result replaces the arguments."""
        return add_hook(self._hooks, "forward_pre", hook, with_kwargs, prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; its result replaces the output."""
        return add_hook(self._hooks, "forward", hook, (with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the gradients of the module are computed."""
        return add_hook(self._hooks, "backward_pre", hook, False, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients by inputs are known."""
        return add_hook(self._hooks, "backward", hook, False, prepend)

    register_backward_hook = register_full_backward_hook

    @property
    def _forward_hooks(self) -> Table:
        return self._hooks.get("forward", {})

    @property
    def _forward_pre_hooks(self) -> Table:
        return self._hooks.get("forward_pre", {})

    @property
    def _backward_hooks(self) -> Table:
        return self._hooks.get("backward", {})


def call_with_hooks(
    module: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Return `call(*args, **kwargs)` between the hooks of `module`."""
    for hook, takes_keywords in hooks_of(module, "forward_pre"):
        args, kwargs = _call_pre_hook(module, hook, takes_keywords, args, kwargs)
    backward = _BackwardHooks(module)
    if backward.is_needed:
        args = backward.pass_inputs(args)
    try:
        output = call(*args, **kwargs)
    except Exception:
        for hook, (takes_keywords, always) in hooks_of(module, "forward"):
            if always:
                hook(module, args, *((kwargs,) if takes_keywords else ()), None)
        raise
    for hook, (takes_keywords, _) in hooks_of(module, "forward"):
        given = (args, kwargs) if takes_keywords else (args,)
        found = hook(module, *given, output)
        output = output if found is None else found
    return backward.pass_outputs(output) if backward.is_needed else output


def _call_pre_hook(
    module: Any,
    hook: Callable[..., Any],
    takes_keywords: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that a hook before `forward` puts in place of the given ones."""
    if takes_keywords:
        found = hook(module, args, kwargs)
        if found is None:
            return args, kwargs
        if not (isinstance(found, tuple) and len(found) == 2):
            raise ArgumentError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                f"but got {found!r:.60}."
            )
        return found
    found = hook(module, args)
    if found is None:
        return args, kwargs
    return (found if isinstance(found, tuple) else (found,)), kwargs


# Hooks in `backward`: what goes into the module and what comes out pass through functions.


class _Pass(Function):
    """Identity whose gradients pass through a function of all of them."""

    _conjugated = True

    @staticmethod
    def forward(ctx: Any, change: Any, *tensors: Any) -> Any:
        """Return the tensors."""
        ctx.change = change
        ctx.set_materialize_grads(False)
        return tuple([x * 1 for x in tensors])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Return the gradients that `change` makes of `gradients`."""
        return (None, *ctx.change(gradients))


class _BackwardHooks:
    """Hooks of one call of a module."""

    def __init__(self, module: Any) -> None:
        self._module = ref(module)
        self._before = [hook for hook, _ in hooks_of(module, "backward_pre")]
        self._after = [hook for hook, _ in hooks_of(module, "backward")]
        self.is_needed = bool(self._before or self._after) and recording.is_on.get()
        self._inputs: tuple[int, list[int]] = (0, [])
        self._outputs: tuple[int, list[int]] = (0, [])
        self._received: tuple[Any, ...] | None = None

    def pass_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments with the gradients of tensors passing through the hooks."""
        places = [i for i, x in enumerate(args) if _is_tracked(x)]
        self._inputs = len(args), places
        return _replace(args, places, self._on_inputs) if self._after else args

    def pass_outputs(self, output: Any) -> Any:
        """Return the results with their gradients passing through the hooks."""
        outputs = output if isinstance(output, tuple) else (output,)
        places = [i for i, x in enumerate(outputs) if _is_tracked(x)]
        self._outputs = len(outputs), places
        outputs = _replace(outputs, places, self._on_outputs)
        return outputs if isinstance(output, tuple) else outputs[0]

    def _on_outputs(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        module, (count, places) = self._module(), self._outputs
        found = _spread(gradients, count, places)
        for hook in self._before:
            changed = hook(module, found)
            if changed is not None:
                found = changed if isinstance(changed, tuple) else (changed,)
        self._received = found
        if not self._inputs[1]:
            for hook in self._after:
                hook(module, (None,) * self._inputs[0], found)
        return [found[i] for i in places]

    def _on_inputs(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        module, (count, places) = self._module(), self._inputs
        found = _spread(gradients, count, places)
        for hook in self._after:
            changed = hook(module, found, self._received)
            if changed is not None:
                found = changed if isinstance(changed, tuple) else (changed,)
                if len(found) != count:
                    raise ArgumentError(
                        f"Backward hook returned an invalid number of grad_input, got "
                        f"{len(found)}, but expected {count}"
                    )
        return [found[i] for i in places]


def _is_tracked(value: Any) -> bool:
    return isinstance(value, Handle) and (not isinstance(value, Tensor) or value.requires_grad)


def _spread(found: Sequence[Any], count: int, places: list[int]) -> tuple[Any, ...]:
    """Return a tuple of `count` with `found` at `places`, and None elsewhere."""
    whole: list[Any] = [None] * count
    for place, value in zip(places, found, strict=True):
        whole[place] = value
    return tuple(whole)


def _replace(
    values: tuple[Any, ...], places: list[int], change: Callable[..., Any]
) -> tuple[Any, ...]:
    """Return `values` with those at `places` passed through `_Pass`."""
    if not places:
        return values
    passed = _Pass.apply(change, *[values[i] for i in places])
    whole = list(values)
    for place, value in zip(
        places, passed if isinstance(passed, tuple) else (passed,), strict=True
    ):
        whole[place] = value
    return tuple(whole)
