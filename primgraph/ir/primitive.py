"""Ops that equations apply: primitives with their rules, and the registry of names."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    final,
    overload,
)

from primgraph.base.atomic import Exit
from primgraph.errors import (
    ArgumentError,
    BuildError,
    MissingRuleError,
    PrimgraphError,
    near_matches,
)
from primgraph.ir.dims import Dim
from primgraph.ir.frontend.signature import checked, misfit
from primgraph.ir.index_maps import Dependence, Opaque, identity, of_view
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.ir.value import Value, recorders
from primgraph.ir.views import View

if TYPE_CHECKING:
    from primgraph.base.user_lines import Source

Rule: TypeAlias = Callable[..., Any]
Types: TypeAlias = tuple[TensorType, ...]
# The result of calling a primitive: a value, or a tuple of values.
R = TypeVar("R")
T = TypeVar("T")
F = TypeVar("F")

_registry: dict[str, Op] = {}


class Recorder(Protocol):
    """Interface that receives equations: a builder, or a probe that only looks them up."""

    source: Source | None
    expands: Callable[[Op], bool]
    stopped: set[Value]
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
        return entered.recorder if not entered.mixed else entered.meant().recorder
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

    def meant(self) -> recording:
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


def record_by_default_into(provider: Callable[[], Recorder]) -> None:
    """Set the recorder that is used when none is entered."""
    _fallback.append(provider)


@final
@dataclass(frozen=True, slots=True)
class Linear:
    """Placeholder in a transpose rule for an operand in which the equation is linear."""

    type: TensorType

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype


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


def _no_tangent(*operands: Value, **params: Any) -> None:
    """JVP rule of operands along which derivatives are zero."""
    return None


@final
class Primitive(Op, Generic[R]):
    """Operation of the small closed set, with every rule that the transforms need.

    Called on values it returns an `R`: a `Value`, or a tuple of them if it is `multiple`. `linear`
    says in which operands it is linear: True for all jointly, a tuple for some of them jointly, a
    function that returns these from the parameters, `"each"` for each operand alone (a product),
    None for none. `elementwise` primitives map operands of equal shape element by element.
    `singular` ones may return an infinity or NaN, in value or derivative, for finite operands.
    `constant` ones have derivative zero wherever it exists. `moves` marks those that only rearrange
    elements of their operands and add zeros; primitives declared as views do so, too. `literal`
    ones have no operands: their parameters hold the result, so that recomputing it is free.
    `random` ones draw random numbers, so the result says nothing about the operand. `flops` is the
    cost: operations per element of the result, or a rule `rule(*types, **params)` for the whole
    result. `facts` are further facts, by kind; see `Fact`.
    """

    __slots__ = (
        "_batch",
        "_expansion",
        "_flops",
        "_index_map",
        "_jvp",
        "_pushforward",
        "_separate",
        "_slopes",
        "_taylor",
        "_transpose",
        "_view",
        "constant",
        "elementwise",
        "impl",
        "linear",
        "literal",
        "moves",
        "random",
        "singular",
        "type_rule",
    )

    def __init__(
        self,
        name: str,
        type_rule: Rule,
        impl: Rule,
        *,
        linear: bool | tuple[int, ...] | str | Callable[..., tuple[int, ...]] | None = None,
        multiple: bool = False,
        commutative: bool = False,
        elementwise: bool = False,
        singular: bool = False,
        constant: bool = False,
        formal: bool = False,
        own_slope: bool | str = False,
        stops: bool = False,
        moves: bool = False,
        literal: bool = False,
        random: bool = False,
        has_bodies: bool = False,
        flops: int | Rule | None = None,
        facts: Mapping[Fact[Any], Any] | None = None,
    ) -> None:
        for part, rule in (("type rule", type_rule), ("impl", impl)):
            if not callable(rule):
                raise ArgumentError(f"the {part} of {name} is a function, not {rule!r:.60}")
        super().__init__(
            name,
            multiple=multiple,
            commutative=commutative,
            formal=formal,
            own_slope=own_slope,
            stops=stops,
            has_bodies=has_bodies,
        )
        self.type_rule = type_rule
        self.impl = impl
        self.linear = linear
        self.elementwise = elementwise
        self.singular = singular
        self.constant = constant
        self.literal = literal
        self.moves = moves
        self.random = random
        self._flops = flops
        self._jvp: dict[int, Rule] = {}
        self._pushforward: Rule | None = None
        self._slopes: Rule | None = None
        self._taylor: Rule | None = None
        self._expansion: Rule | None = None
        self._separate: Rule | None = None
        self._index_map: Rule | None = None
        self._transpose: Rule | None = None
        self._batch: Rule | None = None
        self._view: Rule | None = None
        for kind, fact in (facts or {}).items():
            self.declare(kind, fact)

    @overload
    def __call__(self: Primitive[Value], *inputs: Value, **params: Any) -> Value: ...

    @overload
    def __call__(
        self: Primitive[tuple[Value, ...]], *inputs: Value, **params: Any
    ) -> tuple[Value, ...]: ...

    def __call__(self, *inputs: Value, **params: Any) -> Value | tuple[Value, ...]:
        """Record this primitive on values of the active builder."""
        outputs = active_recorder().emit(self, inputs, params)
        return outputs if self.multiple else outputs[0]

    def infer(self, types: Types, params: dict[str, Any]) -> Types:
        try:
            result = self.type_rule(*types, **params)
        except TypeError as error:
            found = None
            if not isinstance(error, PrimgraphError):
                found = misfit(self.type_rule, types, params)
            if found is None:
                raise
            fault = found.message.partition(":")[2]
            raise ArgumentError(f"{self.name}:{fault}", hint=found.hint) from None
        return result if self.multiple else (result,)

    def evaluate(self, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        result = self.impl(*arrays, **params)
        return tuple(result) if self.multiple else (result,)

    def linear_operands(self, count: int, params: dict[str, Any] | None = None) -> tuple[int, ...]:
        """Return the positions, among `count` operands, in which this primitive is linear.

        None of them if that depends on the parameters and these are missing.
        """
        if self.linear is True or self.linear == "each":
            return tuple(range(count))
        if callable(self.linear):
            return () if params is None else self.linear(**params)
        return self.linear if isinstance(self.linear, tuple) else ()

    def jvp(self, position: int = 0) -> Callable[[Rule], Rule]:
        """Declare `rule(z, *inputs, tangent, **params)` for the operand at `position`.

        `z` is the result, or the tuple of results; the rule then returns a tangent, or None, for
        each.
        """

        def declare(rule: Rule) -> Rule:
            if position in self._jvp:
                raise BuildError(f"{self.name} has a jvp rule for operand {position} already")
            self._jvp[position] = rule
            return rule

        return declare

    def flat(self, *positions: int) -> None:
        """Declare that tangents of the operands at `positions` are zero.

        Such operands only select positions, or are held constant.
        """
        for position in positions:
            self.jvp(position)(_no_tangent)

    def moving(self, inputs: Sequence[T]) -> Sequence[T]:
        """Return those `inputs` along which the derivative may be nonzero."""
        if _no_tangent not in self._jvp.values():
            return inputs
        return [v for i, v in enumerate(inputs) if self._jvp.get(i) is not _no_tangent]

    def pushforward(self, rule: Rule) -> Rule:
        """Declare `rule(inputs, tangents, turned, **params)`, for all operands at once.

        It replaces the rules for single operands, and returns a tangent, or None, for each result.
        `tangents` has the given tangents by position. `turned` says that the recorded equations
        will be transposed instead of evaluated.
        """
        if self._pushforward is not None:
            raise BuildError(f"{self.name} has a rule for all tangents already")
        self._pushforward = rule
        return rule

    def slopes(self, rule: Rule) -> Rule:
        """Declare `rule(inputs, positions, **params)` for a derivative that is in the parameters.

        It returns graphs of the derivative along the operands at these positions, with their inputs
        for these operands, results and seeds. They determine which elements of operands and results
        are related.
        """
        if self._slopes is not None:
            raise BuildError(f"{self.name} has graphs of its derivative already")
        self._slopes = rule
        return rule

    def taylor(self, rule: Rule) -> Rule:
        """Declare `rule(jets, k, z, *inputs, **params)`: Taylor coefficient `k` >= 1 of the result
        `z`, or of a tuple of results.

        `z` and inputs are series: `x[i]` is coefficient i, or None if it is zero; those of `z`
        below `k` are known. `jets` combines them. Primitives without a rule, and rules that return
        `NotImplemented`, use the JVP rules instead.
        """
        if self._taylor is not None:
            raise BuildError(f"{self.name} has a Taylor rule already")
        self._taylor = rule
        return rule

    def expansion(self, rule: Rule) -> Rule:
        """Declare `rule(expand, inputs, moving, order, **params)`, for all Taylor coefficients at
        once, if parameters are graphs.

        `moving` has, by position, the coefficients 1 to `order` of inputs; the rule returns those
        of the results. `expand(graph, places)` appends the coefficients of the inputs at `places`
        to the graph's inputs, and those of its floating-point outputs to its outputs.
        """
        if self._expansion is not None:
            raise BuildError(f"{self.name} has a rule for all coefficients already")
        self._expansion = rule
        return rule

    def separate(self, rule: Rule) -> Rule:
        """Declare `rule(linear, *inputs, **params)`, for an op whose linearity depends on
        parameters.

        `linear` says in which operands the results are linear; at least one is. The rule records
        the same results by equations that either do not use these operands, or are linear in them
        with all results. The transpose rule receives only the latter.
        """
        if self._separate is not None:
            raise BuildError(f"{self.name} has a rule that separates it already")
        self._separate = rule
        return rule

    def transpose(self, rule: Rule) -> Rule:
        """Declare `rule(ct, *inputs, **params)`, which returns one cotangent or None per input."""
        if self._transpose is not None:
            raise BuildError(f"{self.name} has a transpose rule already")
        self._transpose = rule
        return rule

    def batch(self, rule: Rule) -> Rule:
        """Declare `rule(batched, *inputs, **params)`: the op with a leading batch dimension.

        `batched` says for each input whether it has that axis; at least one does.
        """
        if self._batch is not None:
            raise BuildError(f"{self.name} has a batching rule already")
        self._batch = rule
        return rule

    def index_map(self, rule: Rule) -> Rule:
        """Declare `rule(k, i, operands, results, **params)`: the index map of a result and operand.

        It gives what of operand `i` elements of result `k` depend on, as data of
        `primgraph.ir.index_maps`; `operands` and `results` are types. What is elementwise, a view,
        or consists of graphs needs none. Of a primitive that has no map all elements of operands
        may matter to all of results.
        """
        if self._index_map is not None:
            raise BuildError(f"{self.name} has an index map already")
        self._index_map = rule
        return rule

    def opaque(self, reason: str) -> None:
        """Declare that any element of results may depend on any of operands, and why."""
        self.index_map(lambda k, i, operands, results, **params: Opaque(reason))

    def view(self, rule: Rule) -> Rule:
        """Declare `rule(k, x, **params)`: how result `k` is a view of the operand `x`.

        It returns a view of `primgraph.ir.views`, or None if the result is the operand, possibly
        broadcast along leading axes.
        """
        if self._view is not None:
            raise BuildError(f"{self.name} has a rule for its view already")
        self._view = rule
        self.is_view = self.moves = True
        return rule

    def flops(self, types: Types, params: dict[str, Any]) -> int:
        """Return the number of floating-point operations on operands of these types.

        One addition, subtraction, multiplication or comparison of two numbers is one operation, a
        division or a square root is four, any other function eight: the weights of F. H. McMahon,
        The Livermore Fortran Kernels, report UCRL-53745, 1986. Every element of a sum but the first
        is one addition. Integers and booleans count like floats; moving and converting elements
        counts nothing.

        Raises `MissingRuleError` for a primitive that was declared without it.
        """
        if self._flops is None:
            raise MissingRuleError(
                f"it is not known what primitive {self.name} costs",
                hint="declare it with flops=..., a number for each element or a rule of the types",
            )
        if callable(self._flops):
            found = self._flops(*types, **params)
            return found if isinstance(found, Dim) else int(found)
        if self._flops == 0:
            return 0
        return self._flops * sum(t.size for t in self.infer(types, params))

    @property
    def costs_nothing(self) -> bool:
        """Whether it is declared to cost no operation, whatever the operands."""
        return self._flops == 0

    @property
    def has_index_map(self) -> bool:
        """Whether it is declared what elements of results depend on."""
        declared = self._index_map is not None or self.elementwise or self.is_view
        return declared or self.has_bodies

    def dependence(
        self, k: int, i: int, operands: Types, results: Types, params: dict[str, Any]
    ) -> Dependence:
        """Return what of operand `i` the elements of result `k` depend on; see `index_map`.

        Of a formal primitive the first operand is the result, and the others are what it stands
        for.
        """
        if self.elementwise or (self.formal and i == 0):
            return identity(results[k].shape)
        if self._view is not None:
            return of_view(self.seen(k, operands[i], params), operands[i].shape, results[k].shape)
        if self._index_map is None:
            return Opaque("its graphs say it" if self.has_bodies else "it is not declared")
        found: Dependence = self._index_map(k, i, operands, results, **params)
        return found

    def is_flat(self, position: int) -> bool:
        """Whether no tangent comes from the operand at this position; see `flat`."""
        return self._jvp.get(position) is _no_tangent

    def jvp_rule(self, position: int) -> Rule | None:
        return self._jvp.get(position)

    @property
    def slopes_rule(self) -> Rule | None:
        return self._slopes

    @property
    def separate_rule(self) -> Rule | None:
        return self._separate

    @property
    def taylor_rule(self) -> Rule | None:
        return self._taylor

    @property
    def expansion_rule(self) -> Rule | None:
        return self._expansion

    @property
    def pushforward_rule(self) -> Rule | None:
        return self._pushforward

    def seen(self, k: int, x: TensorType, params: dict[str, Any]) -> View | None:
        """Return how result `k` is a view of the operand `x`, for a view primitive."""
        found: View | None = self._require_rule(self._view, "view")(k, x, **params)
        return found

    @property
    def transpose_rule(self) -> Rule:
        return self._require_rule(self._transpose, "transpose")

    @property
    def batch_rule(self) -> Rule:
        return self._require_rule(self._batch, "batching")

    @property
    def has_transpose_rule(self) -> bool:
        return self._transpose is not None

    @property
    def has_batch_rule(self) -> bool:
        return self._batch is not None

    def _require_rule(self, rule: Rule | None, kind: str) -> Rule:
        if rule is None:
            raise MissingRuleError(
                f"primitive {self.name} has no {kind} rule",
                hint=f"declare one with @{self.name}.{'batch' if kind == 'batching' else kind}",
            )
        return rule


@overload
def primitive(
    *, name: str | None = None, impl: Rule, multiple: Literal[False] = False, **properties: Any
) -> Callable[[Rule], Primitive[Value]]: ...


@overload
def primitive(
    *, name: str | None = None, impl: Rule, multiple: Literal[True], **properties: Any
) -> Callable[[Rule], Primitive[tuple[Value, ...]]]: ...


@checked
def primitive(
    *, name: str | None = None, impl: Rule, **properties: Any
) -> Callable[[Rule], Primitive[Any]]:
    """Decorate a type rule to make it a primitive, by default of the same name.

    `impl` computes the value from arrays; `properties` are those of `Primitive`.

    >>> from primgraph.extend import emit, lift, primitive
    >>> @primitive(impl=lambda x: x[::-1], linear=True)
    ... def backwards(x):
    ...     return x
    >>> @backwards.transpose
    ... def backwards_transpose(ct, x):
    ...     return (backwards(ct),)
    >>> pg.check_grads(lambda x: emit(backwards, lift(x)), [np.array([1.0, 2.0])])
    """

    def declare(type_rule: Rule) -> Primitive[Any]:
        return Primitive(name or type_rule.__name__.rstrip("_"), type_rule, impl, **properties)

    return declare


# Modules that declare ops, loaded when one of these is first looked up by name.
later: list[str] = []
# The module of each function and operator that is loaded on first use, by name.
homes: dict[str, str] = {}


def lookup(name: str) -> Op:
    """Return the op of that name.

    Raises `MissingRuleError`, with near matches, if there is none.

    >>> from primgraph.extend import lookup
    >>> lookup("sin").elementwise
    True
    """
    if name not in _registry and name in homes:
        import_module(homes[name])
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


def loaded() -> dict[str, Op]:
    """Return the ops of the modules loaded so far."""
    return dict(_registry)


def _record_op(name: str, operands: Sequence[Value], params: dict[str, Any]) -> Value:
    """Record an op of one result into the active recorder."""
    return active_recorder().emit(lookup(name), operands, params)[0]


recorders.append(_record_op)


def _load_others() -> None:
    """Load the modules of rarely used ops."""
    for name in [*later, *sorted(set(homes.values()))]:
        import_module(name)
