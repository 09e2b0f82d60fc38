"""Ops that equations apply: names, facts and the registry; and recorders of what they apply to."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, final

from primgraph.base.atomic import Exit
from primgraph.errors import ArgumentError, BuildError, MissingRuleError, near_matches
from primgraph.ir.types import TensorType
from primgraph.ir.value import Value, recorders

if TYPE_CHECKING:
    from primgraph.base.user_lines import Source

Rule: TypeAlias = Callable[..., Any]
Types: TypeAlias = tuple[TensorType, ...]
F = TypeVar("F")


@final
class Fact(Generic[F]):
    """Kind of fact that an op may declare about itself; `default` holds for all other ops.

    An analysis asks an op for a fact, and does not compare ops.

    >>> from primgraph.extend import Fact, lookup
    >>> parity = Fact("parity", None)
    >>> lookup("cosh").declare(parity, "even")
    >>> [lookup(name).fact(parity) for name in ("cosh", "exp")]
    ['even', None]
    """

    __slots__ = ("default", "name")

    def __init__(self, name: str, default: F) -> None:
        self.name = name
        self.default = default

    def __repr__(self) -> str:
        return f"<fact {self.name}>"


_registry: dict[str, Op] = {}
# Modules that declare ops, loaded when one of these is first looked up by name.
later: list[str] = []
# The module of each function and operator that is loaded on first use, by name.
homes: dict[str, str] = {}


class Op(ABC):
    """Op that equations apply: a name, a type rule and a NumPy implementation.

    `multiple` ops return a tuple. The two operands of `commutative` ops may be swapped without
    changing a bit. `formal` ops return their first operand; the others matter to derivatives only.
    A formal op with `own_slope` has a derivative along these others and none along the first: that
    of their computation or, if "given", any that is requested. The result of an op with `stops` is
    a constant for derivatives. The results of an op with `is_view` are views of the operand. An op
    with `has_bodies` has graphs in its parameters.
    """

    __slots__ = (
        "_facts",
        "commutative",
        "formal",
        "has_bodies",
        "home",
        "is_view",
        "multiple",
        "name",
        "own_slope",
        "stops",
    )

    def __init__(
        self,
        name: str,
        *,
        multiple: bool = False,
        commutative: bool = False,
        formal: bool = False,
        own_slope: bool | str = False,
        stops: bool = False,
        has_bodies: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"an op is named by a string, not {name!r:.60}")
        if name in _registry:
            raise BuildError(f"an op named {name!r} is registered already")
        self.name = name
        self.multiple = multiple
        self.commutative = commutative
        self.formal = formal
        self.own_slope = own_slope
        self.stops = stops
        self.has_bodies = has_bodies
        self.is_view = False
        # The module whose import declares this op.
        self.home = _module_being_imported()
        self._facts: dict[Fact[Any], Any] = {}
        _registry[name] = self

    def fact(self, kind: Fact[F]) -> F:
        """Return the declared fact of that kind, or its default."""
        found: F = self._facts.get(kind, kind.default)
        return found

    def declare(self, kind: Fact[F], fact: F) -> None:
        """Declare a fact of this op; raises `BuildError` if it is declared already."""
        if kind in self._facts:
            raise BuildError(f"{self.name} has a fact {kind.name} already")
        self._facts[kind] = fact

    def declares(self, kind: Fact[Any]) -> Callable[[Rule], Rule]:
        """Decorate a rule to declare it as the fact of that kind."""

        def declare(rule: Rule) -> Rule:
            self.declare(kind, rule)
            return rule

        return declare

    @abstractmethod
    def infer(self, types: Types, params: dict[str, Any]) -> Types:
        """Return the types of the outputs; raises `ShapeError` or `DTypeError` for invalid
        operands."""

    @abstractmethod
    def evaluate(self, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Evaluate with NumPy, and return one array per output."""

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return lookup, (self.name,)

    def __deepcopy__(self, memo: Any) -> Op:
        return self


def _module_being_imported() -> str:
    """Return the name of the module whose body calls this; "" outside of modules."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


# Names.


def lookup(name: str) -> Op:
    """Return the op of that name.

    Raises `MissingRuleError`, with near matches, if there is none.

    >>> from primgraph.extend import lookup
    >>> lookup("sin").elementwise
    True
    """
    if name not in _registry and name in homes:
        import_module(homes[name])
    for module in later:
        if name in _registry:
            break
        import_module(module)
    if name not in _registry:
        _load_others()
    try:
        return _registry[name]
    except KeyError:
        hint = near_matches(name, _registry)
        raise MissingRuleError(f"no op is named {name!r}", hint=hint) from None


def registered() -> dict[str, Op]:
    """Return all ops by name, in the order in which they were declared.

    >>> from primgraph.extend import registered
    >>> "sin" in registered()
    True
    """
    _load_others()
    return dict(_registry)


def loaded_ops() -> dict[str, Op]:
    """Return the ops of the modules loaded so far."""
    return dict(_registry)


def _load_others() -> None:
    """Load the modules of rarely used ops."""
    for name in [*later, *sorted(set(homes.values()))]:
        import_module(name)


# Recorders.


class Recorder(Protocol):
    """Interface that receives equations: a builder, or a probe that only looks them up."""

    source: Source | None
    expands: Callable[[Op], bool]
    stopped: set[Value]
    weak: set[Value]
    in_call: bool

    def emit(
        self, op: Op, inputs: Sequence[Value], params: dict[str, Any]
    ) -> tuple[Value, ...]: ...

    def rename(self, value: Value, name: str) -> None: ...

    def name_of(self, value: Value) -> str: ...

    def described(self, value: Value) -> list[tuple[str, str]]: ...

    def hold(self, value: Value, stop: bool) -> None: ...

    def begin_call(self) -> None: ...

    def hand_out(self, values: Sequence[Value]) -> list[Value]: ...


# The context that was entered last and not left yet.
innermost: ContextVar[recording | None] = ContextVar("primgraph_recorder", default=None)
_fallback: list[Callable[[], Recorder]] = []


def active_recorder() -> Recorder:
    """Return the innermost entered recorder, else the default program's."""
    entered = innermost.get()
    if entered is not None:
        return entered.recorder if not entered.mixed else entered.running_context().recorder
    if _fallback:
        return _fallback[-1]()
    raise BuildError("no builder is active", hint="enter one: `with pg.Builder() as builder:`")


class recording:
    """Context manager that records ops into `recorder`.

    Contexts may be left in any order, and two generators, each in one, may alternate. With the
    `frame` that entered it, a context applies to code that this frame runs. `outer` is the
    enclosing context, `within` the innermost one whose frame was running when this one was entered.
    `mixed` says that these may differ.
    """

    __slots__ = ("frame", "left", "mixed", "outer", "recorder", "within")

    frame: FrameType | None
    left: bool
    mixed: bool
    outer: recording | None
    within: recording | None

    def __init__(self, recorder: Recorder, frame: FrameType | None = None) -> None:
        self.recorder = recorder
        self.frame = frame
        self.left = False

    def __enter__(self) -> None:
        outer = self.outer = innermost.get()
        self.mixed = outer is not None and outer.mixed
        self.within = outer
        if self.frame is not None and outer is not None:
            self.within = outer._context_of_frame(self.frame)
            self.mixed = self.mixed or self.within is not outer._context_with_frame()
        innermost.set(self)

    def leave(self) -> None:
        """Leave the context unless it was left before."""
        self.left, self.frame = True, None
        outer = innermost.get()
        if outer is self:
            while outer is not None and outer.left:
                outer = outer.outer
            innermost.set(outer)

    def _prepare_restore(self) -> Callable[[], None]:
        return self.leave

    __exit__ = Exit(leave, _prepare_restore)

    def running_context(self) -> recording:
        """Return the context of the running frame, among this and the enclosing ones."""
        running = None if self.frame is None else self._context_of_frame(sys._getframe(1))
        if running is None:
            return self
        entered: recording | None = self
        while entered is not None and not entered._belongs(running.frame):
            entered = entered.outer
        return running if entered is None else entered

    def _context_with_frame(self) -> recording | None:
        """Return the innermost context with a frame, starting with this one."""
        entered: recording | None = self
        while entered is not None and entered.frame is None:
            entered = entered.outer
        return entered

    def _context_of_frame(self, frame: FrameType | None) -> recording | None:
        """Return the innermost context entered by `frame` or by one of its callers."""
        frames: dict[FrameType, recording] = {}
        entered: recording | None = self
        while entered is not None:
            if entered.frame is not None:
                frames.setdefault(entered.frame, entered)
            entered = entered.outer
        while frame is not None and frame not in frames:
            frame = frame.f_back
        return None if frame is None else frames[frame]

    def _belongs(self, frame: FrameType | None) -> bool:
        """Return whether this was entered by `frame` or its callees."""
        entered: recording | None = self
        while entered is not None and entered.frame is not frame:
            entered = entered.within
        return entered is not None and not self.left


@final
class Entered:
    """Contexts of one recorder that were entered and not left yet."""

    __slots__ = ("_contexts",)

    def __init__(self) -> None:
        self._contexts: list[recording] = []

    def __len__(self) -> int:
        return len(self._contexts)

    def enter(self, recorder: Recorder, frame: FrameType | None) -> None:
        """Enter a context that records into `recorder`."""
        context = recording(recorder, frame)
        self._contexts.append(context)
        context.__enter__()

    def leave_to(self, depth: int) -> None:
        """Leave the innermost contexts until `depth` are left."""
        while len(self._contexts) > depth:
            self._contexts[-1].leave()
            self._contexts.pop()


def record_by_default_into(provider: Callable[[], Recorder]) -> None:
    """Set the recorder that is used when none is entered."""
    _fallback.append(provider)


def _record_op(name: str, operands: Sequence[Value], params: dict[str, Any]) -> Value:
    """Record an op of one result into the active recorder."""
    op = _registry.get(name)
    return active_recorder().emit(lookup(name) if op is None else op, operands, params)[0]


recorders.append(_record_op)
