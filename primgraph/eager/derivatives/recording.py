"""Whether derivatives are to go through what is computed: a state of each thread and task."""

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

# Whether a function is being called to take derivatives of it.
is_followed: ContextVar[bool] = ContextVar("primgraph_followed", default=False)

# Whether that is so here or around, where derivatives may be taken of what is computed.
is_within: ContextVar[bool] = ContextVar("primgraph_within_a_function", default=False)


@contextmanager
def within() -> Iterator[None]:
    """Where a function is called that derivatives are taken of."""
    before = is_within.get()
    try:
        is_within.set(True)
        yield
    finally:
        is_within.set(before)


@contextmanager
def followed() -> Iterator[None]:
    """Let derivatives go through all that a function computes here, which is called for them."""
    before = is_followed.get()
    try:
        is_followed.set(True)
        with enable_grad(), within():
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
    """Whether derivatives are to go through the result of `step`, which is computed now."""
    for i in step.reaching:
        if inputs[i].tracked:
            return is_on.get()
    return False


class _Switch(Setting):
    """A context, and a decorator, in which derivatives go through what is computed, or do not.

    What is decorated has its own context in each call: generators and coroutines while they run,
    and not while they wait.
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
        def within(*args: Any, **kwargs: Any) -> Any:
            with Setting(is_on, enabled):
                found = function(*args, **kwargs)
            return _resumed(enabled, found) if is_resumed else found

        @wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with Setting(is_on, enabled):
                return await function(*args, **kwargs)

        is_resumed = isgeneratorfunction(function)
        return cast(F, awaited if iscoroutinefunction(function) else within)


def _resumed(enabled: bool, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """What `generator` yields; it runs within the context, and who resumes it does not."""
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

    Also a decorator. Contexts may stand in each other, and count for the thread, or the
    asynchronous task, that has entered them.

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
            # What it was set from where it was made is what it goes back to.
            self._before[-1], self._first = self._first, None

    def __call__(self, function: F) -> F:
        if self._first is not None:
            is_on.set(self._first)
            self._first = None
        return super().__call__(function)


class _Mode(_Switch):
    """A context, and a decorator, of one kind."""

    _enabled: bool

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__(self._enabled)
        if function is not None:
            raise ArgumentError(
                f"{type(self).__name__} is called before it decorates",
                hint=f"write @pg.{type(self).__name__}()",
            )


@final
class no_grad(_Mode):
    """A context, and a decorator, in which what is computed counts as a constant afterwards.

    Written `with pg.no_grad():` or `@pg.no_grad()`. It is also where leaves that require a gradient
    are changed in place. Holds for the thread, or the asynchronous task, that has entered it.

    In a program, and in a function that is traced or compiled, what is computed there is
    `stop_gradient` of it. A compiled function that is called there keeps its derivative.

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
    """A context, and a decorator, within `no_grad`, in which derivatives go through again.

    >>> x = pg.tensor(2.0, requires_grad=True)
    >>> with pg.no_grad(), pg.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """

    _enabled = True
