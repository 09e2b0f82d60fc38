"""Gradient mode: whether derivatives go through computations, per thread and task."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

from primgraph.base.atomic import Setting
from primgraph.base.grad_mode import is_on as is_on
from primgraph.errors import ArgumentError

if TYPE_CHECKING:
    from primgraph.eager.node import Node
    from primgraph.eager.steps import Step

F = TypeVar("F", bound=Callable[..., Any])

# Whether a function is being called for its derivatives.
is_followed: ContextVar[bool] = ContextVar("primgraph_followed", default=False)

# Whether this, or an enclosing call, is a function being differentiated.
is_within: ContextVar[bool] = ContextVar("primgraph_within_a_function", default=False)


@contextmanager
def mark_differentiated() -> Iterator[None]:
    """Mark the body as part of a function that is being differentiated."""
    before = is_within.get()
    try:
        is_within.set(True)
        yield
    finally:
        is_within.set(before)


@contextmanager
def track_all() -> Iterator[None]:
    """Track all computations of a function that is called for its derivatives."""
    before = is_followed.get()
    try:
        is_followed.set(True)
        with enable_grad(), mark_differentiated():
            yield
    finally:
        is_followed.set(before)


def is_grad_enabled() -> bool:
    """Return whether derivatives go through what is computed now.

    >>> with pg.no_grad():
    ...     print(pg.is_grad_enabled())
    False
    """
    return is_on.get()


def is_tracked(step: Step, inputs: Sequence[Node]) -> bool:
    """Return whether derivatives go through the result of `step`."""
    for i in step.reaching:
        if inputs[i].tracked:
            return is_on.get()
    return False


class _Switch(Setting):
    """Context manager and decorator that switches gradient mode.

    A decorated function enters it in each call; a generator or coroutine while it runs, not while
    it is suspended.
    """

    def __init__(self, enabled: bool) -> None:
        super().__init__(is_on, enabled)

    def __call__(self, function: F) -> F:
        if isasyncgenfunction(function):
            raise ArgumentError(
                f"{type(self).__name__} does not decorate asynchronous generators",
                hint="enter it inside, where nothing is yielded",
            )
        enabled = self._value

        @wraps(function)
        def call_with_setting(*args: Any, **kwargs: Any) -> Any:
            with Setting(is_on, enabled):
                found = function(*args, **kwargs)
            return _run_generator(enabled, found) if is_resumed else found

        @wraps(function)
        async def await_with_setting(*args: Any, **kwargs: Any) -> Any:
            with Setting(is_on, enabled):
                return await function(*args, **kwargs)

        is_resumed = isgeneratorfunction(function)
        return cast(F, await_with_setting if iscoroutinefunction(function) else call_with_setting)


def _run_generator(enabled: bool, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run `generator` within the context, but not the code that resumes it."""
    step: Callable[[], Any] = generator.__next__
    try:
        while True:
            with Setting(is_on, enabled):
                found = step()
            try:
                sent = yield found
            except GeneratorExit:
                raise
            except BaseException as error:
                step = partial(generator.throw, error)
            else:
                step = partial(generator.send, sent)
    except StopIteration as end:
        return end.value
    finally:
        with Setting(is_on, enabled):
            generator.close()


@final
class set_grad_enabled(_Switch):
    """Switch of derivatives, from now on or as a context.

    Also a decorator. Contexts nest, and apply to the current thread or asynchronous task.

    >>> with pg.set_grad_enabled(False):
    ...     print(pg.is_grad_enabled())
    False
    """

    def __init__(self, enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise ArgumentError(f"set_grad_enabled takes True or False, not {enabled!r:.60}")
        super().__init__(enabled)
        self._first: bool | None = is_on.get()
        is_on.set(enabled)

    def __enter__(self) -> None:
        super().__enter__()
        if self._first is not None:
            # The former mode is that at the time of the call, before the context was entered.
            self._before[-1], self._first = self._first, None

    def __call__(self, function: F) -> F:
        if self._first is not None:
            is_on.set(self._first)
            self._first = None
        return super().__call__(function)


class _Mode(_Switch):
    """Context manager and decorator that sets a fixed gradient mode."""

    _enabled: bool

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        # A function is that of `@no_grad` without a call.
        return cls()(function) if callable(function) else super().__new__(cls)

    def __init__(self, function: Any = None) -> None:
        super().__init__(self._enabled)
        if function is not None and not isinstance(function, bool):
            raise ArgumentError(f"{type(self).__name__} decorates functions, not {function!r:.60}")


@final
class no_grad(_Mode):
    """Context manager and decorator whose results are constants for derivatives.

    Written `with pg.no_grad():` or `@pg.no_grad()`. Inside, leaves that require a gradient may be
    changed in place. Applies to the current thread or asynchronous task.

    In a program, and in a function that is traced or compiled, results are passed through
    `stop_gradient`. A compiled function that is called inside keeps its derivative.

        with pg.Program():
            x = pg.data("x", (3,))
            with pg.no_grad():
                scale = pg.max(pg.abs(x))
            slope = pg.grad(pg.sum(x / scale), x)  # 1 / scale

    >>> x = pg.tensor(2.0, requires_grad=True)
    >>> with pg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    _enabled = False


@final
class inference_mode(_Mode):
    """Context and decorator like `no_grad`: tensors never change here, so it saves no more.

    >>> x = pg.tensor(2.0, requires_grad=True)
    >>> with pg.inference_mode():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    _enabled = False


@final
class enable_grad(_Mode):
    """Context manager and decorator that re-enables derivatives within `no_grad`.

    >>> x = pg.tensor(2.0, requires_grad=True)
    >>> with pg.no_grad(), pg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    _enabled = True
