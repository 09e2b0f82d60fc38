"""The graph of derivatives, by the names of `torch.autograd.graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.compat.torch.core.gradient_nodes import Node
from primgraph.compat.torch.tensor import storage_of
from primgraph.eager.tensor import Tensor
from primgraph.errors import OptionError

__all__ = [
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


@contextmanager
def save_on_cpu(pin_memory: bool = False, device_type: str = "cuda") -> Iterator[None]:
    """Keep what derivatives need in the processor's memory, where it is anyway.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = (x * x).sum()
    """
    yield


@contextmanager
def saved_tensors_hooks(
    pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]
) -> Iterator[None]:
    """Accept hooks that store what derivatives need elsewhere, and do not call them.

    Operations keep nothing here: their inputs never change, and derivatives read them. Hooks that
    give back what they take have no effect on results. Raises `OptionError` for what is not
    callable.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
    ...     y = (x * x).sum()
    """
    if not (callable(pack_hook) and callable(unpack_hook)):
        raise OptionError("saved_tensors_hooks takes two functions")
    yield


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Accept a block in which there are no hooks of saved tensors.

    >>> with torch.autograd.graph.disable_saved_tensors_hooks("none here"):
    ...     pass
    """
    yield


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[None]:
    """Accept a block in which tensors may change that derivatives need: they always may here.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 2
    ...     z = (y * y).sum()
    ...     y = y.zero_()
    >>> z.backward()
    >>> x.grad
    tensor([8., 8.])
    """
    yield


def increment_version(tensor: Any) -> None:
    """Count one more change in place of a tensor, or of several.

    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for item in [tensor] if isinstance(tensor, Tensor) else tensor:
        storage_of(item).version += 1


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], Any], *, mode: str = "all"
) -> ExitStack:
    """Call `fn` with the gradients of several tensors when all, or one of them, have one.

    Return an object whose `close` removes the hooks.

    >>> x = torch.ones(2, requires_grad=True)
    >>> hooks = torch.autograd.graph.register_multi_grad_hook([x], print)
    >>> x.sum().backward()
    [tensor([1., 1.])]
    """
    if mode not in ("all", "any"):
        raise OptionError(f"mode= is 'all' or 'any', not {mode!r:.60}")
    found: dict[int, Any] = {}

    def collect(place: int, gradient: Any) -> None:
        if mode == "any":
            if not found:
                found[place] = gradient
                fn(gradient)
            return
        found[place] = gradient
        if len(found) == len(tensors):
            given = [found[i] for i in range(len(tensors))]
            found.clear()
            fn(given)

    handles = ExitStack()
    for place, tensor in enumerate(tensors):
        handles.enter_context(tensor.register_hook(lambda g, place=place: collect(place, g)))
    handles.remove = handles.close  # type: ignore[attr-defined]
    return handles


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
