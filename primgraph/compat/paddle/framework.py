"""General functions of Paddle's API: modes, places, default dtype, attributes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast, final

from primgraph.compat.paddle.core.methods import Variable
from primgraph.compat.paddle.core.program import Program as Program
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.randomness import Generator as _Generator
from primgraph.eager.seeds import next_key, seeded
from primgraph.eager.seeds import seed as set_seed
from primgraph.errors import ArgumentError, BuildError, NotDifferentiable, OptionError
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.primitive import innermost
from primgraph.nn.basic import key_of, program_around
from primgraph.operators.call import appliers
from primgraph.operators.variable import in_manner

P = ParamSpec("P")
R = TypeVar("R")

_is_static: list[bool] = [False]


def paddles(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function`, of a signature of Paddle's, refuse arguments that it does not take.

    A `name` has no effect, but is a string or None: another argument at its place is none of
    Paddle's. In static mode what is made from nothing belongs to the default program, where no
    other one is entered. Variables that it returns have Paddle's methods.
    """
    found = inspect.signature(function).parameters
    parameters = list(found)
    is_placed = "name" in found and found["name"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    place = parameters.index("name") if is_placed else sys.maxsize
    checked = checked_late(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        name = args[place] if len(args) > place else kwargs.get("name")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(
                f"{function.__name__}: name is a string or None, not {name!r:.60}",
                hint=f"it takes {', '.join(parameters)}",
            )
        if in_dynamic_mode() or innermost.get() is not None:
            result = checked(*args, **kwargs)
            return result if type(result) in appliers else cast("R", in_manner(Variable, result))
        with building_program():
            return cast("R", in_manner(Variable, checked(*args, **kwargs)))

    return call


class GradientError(NotDifferentiable, RuntimeError, ValueError):
    """A derivative was asked for that does not exist.

    Paddle raises a RuntimeError for an output that depends on no input, and a ValueError for an
    input that no output depends on.
    """


class RequirementError(ArgumentError, AssertionError):
    """An argument is not what is required: an AssertionError, as in Paddle."""


class SpentGraphError(BuildError, SystemError):
    """A graph was differentiated that an earlier backward has dropped."""

    @classmethod
    @contextmanager
    def instead(cls) -> Iterator[None]:
        """Raise this class in place of the `BuildError` of a graph that was dropped."""
        try:
            yield
        except BuildError as error:
            if type(error) is not BuildError or "second time" not in error.message:
                raise
            raise cls(error.message, origin=error.origin, hint=error.hint) from None


def as_paddle_raises(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` raise a `GradientError` for a derivative that does not exist."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except NotDifferentiable as error:
            raise GradientError(error.message, origin=error.origin, hint=error.hint) from None

    return call


def reject_options(function: str, **options: Any) -> None:
    """Raise `OptionError`, a ValueError, for an option that is given and not there."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise OptionError(f"{function}: {name}={value!r:.60} is not supported, leave it out")


def enable_static() -> None:
    """Build programs first and run them later, from now on.

    What is computed with variables is built into their program in either mode, and what is
    computed with tensors is computed: the mode says what is made from nothing.

    >>> paddle.enable_static()
    >>> paddle.in_dynamic_mode()
    False
    >>> paddle.disable_static()
    """
    _is_static[0] = True


def disable_static(place: Any = None) -> None:
    """Compute eagerly from now on, which is the initial mode.

    >>> paddle.disable_static()
    >>> paddle.ones([2]).tolist()
    [1.0, 1.0]
    """
    _is_static[0] = False


@contextmanager
def static_mode(is_static: bool) -> Iterator[None]:
    """Build programs, or compute eagerly, within this context."""
    before, _is_static[0] = _is_static[0], is_static
    try:
        yield
    finally:
        _is_static[0] = before


def in_dynamic_mode() -> bool:
    """Return whether functions of no arrays, called outside of programs, return tensors.

    >>> paddle.in_dynamic_mode()
    True
    """
    return not _is_static[0]


@final
class Generator(_Generator):
    """The source of the random tensors of dynamic mode, which `paddle.seed` returns.

    >>> generator = paddle.seed(7)
    >>> generator.initial_seed()
    7
    >>> state = generator.get_state()
    >>> a = paddle.rand([2])
    >>> generator.set_state(state)
    >>> bool((a == paddle.rand([2])).all())
    True
    """

    def __init__(self) -> None:
        self._streams = seeded

    def get_state(self) -> Any:
        """Return the state, as `paddle.get_rng_state` does."""
        return self._streams.state()

    def random(self) -> int:
        """Return a random integer."""
        return self._streams.next_key()


_generator = Generator()


@paddles
def seed(seed: int) -> Generator:
    """Set the `random_seed` of the program being built, as each program has its own.

    In dynamic mode, outside of programs, set the seed for random tensors. Returns their generator.

    >>> _ = paddle.seed(0)
    >>> first = paddle.rand([2])
    >>> _ = paddle.seed(0)
    >>> bool(paddle.max(paddle.abs(first - paddle.rand([2]))) == 0.0)
    True
    """
    if builds_program():
        building_program().random_seed = seed
    else:
        set_seed(seed)
    return _generator


def builds_program() -> bool:
    """Whether what is made from nothing belongs to a program."""
    return not in_dynamic_mode() or innermost.get() is not None


def new_key() -> Any:
    """A key for random numbers: of the program that is being built, or of none."""
    if not builds_program():
        return next_key()
    entered = innermost.get()
    around = None if entered is None else program_around(entered.recorder)
    return key_of(around or building_program())


@dataclass(frozen=True, slots=True)
class CPUPlace:
    """The processor, which is the only place where programs run.

    >>> paddle.CPUPlace()
    Place(cpu)
    """

    def is_cpu_place(self) -> bool:
        """Return True."""
        return True

    def is_gpu_place(self) -> bool:
        """Return False."""
        return False

    def __repr__(self) -> str:
        return "Place(cpu)"


def checked_place(function: str, place: Any) -> Any:
    """Raise `ArgumentError` for another place than the memory of the CPU."""
    if place is not None and not isinstance(place, CPUPlace) and str(place) != "cpu":
        raise ArgumentError(
            f"{function}: there is no place {place!r:.60}: tensors are in the memory of the CPU",
            hint="leave out place",
        )
    return place
