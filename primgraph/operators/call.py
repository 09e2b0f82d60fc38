"""Declaration of public functions and operators on handles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.base.grad_mode import enable_tracking, is_on
from primgraph.base.providers import provider
from primgraph.base.user_lines import caller
from primgraph.errors import ArgumentError, PrimgraphError
from primgraph.ir.assumptions import Condition, note, record_assumptions
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import UNFIT, signature_error
from primgraph.ir.interpret import interpret
from primgraph.ir.params import bits, freeze_all
from primgraph.ir.primitive import (
    Op,
    Recorder,
    Types,
    active_recorder,
    innermost,
    lookup,
    recording,
)
from primgraph.ir.rebuild import change_graphs
from primgraph.ir.types import TensorType
from primgraph.operators.call_cache import call_again, decided_by_types, is_decided_by_types
from primgraph.operators.lazy_loading import functions
from primgraph.operators.promotion import SCALARS, lift
from primgraph.operators.variable import (
    Variable,
    handles,
    in_manner,
    kind_of,
    manner,
    map_variables,
    use_variable_class,
)

P = ParamSpec("P")
R = TypeVar("R")


# Functions that apply an operator to handles of other classes, by class; that of `object` is for
# plain arrays and numbers while no program is entered.
appliers: dict[type, Callable[..., Any]] = {}

# Maps each function to its public operator.
called: dict[Callable[..., Any], Callable[..., Any]] = {}


def constant(found: Any) -> Any:
    """Wrap `found` in `stop_gradient` if it is a variable of a program.

    For results in `pg.no_grad()`. Other objects are returned as they are.
    """
    if not isinstance(found, Variable) or not found.type.is_inexact:
        return found
    builder, value = found.recorder, found.value
    if not isinstance(builder, Builder) or not builder.written:
        return found
    eqn = builder.definition(value)
    if eqn is not None and (eqn.op.stops or not eqn.inputs):
        return found
    return type(found)(builder, builder.emit(lookup("stop_gradient"), [value], {})[0])


def constant_in_no_grad(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that its variables are constants within `pg.no_grad()`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        result = function(*args, **kwargs)
        return result if is_on.get() else cast("R", map_variables(result, constant))

    return call


def common_recorder(operands: Sequence[Variable]) -> Recorder:
    """Return the program of all `operands`; the active one if there are none."""
    found: Recorder | None = None
    for operand in operands:
        if found is None:
            found = operand.recorder
        elif operand.recorder is not found:
            raise provider("origins").foreign([(v.recorder, v.value) for v in operands])
    return found if found is not None else active_recorder()


def common_program(operands: Sequence[Variable]) -> tuple[Recorder, list[Variable]]:
    """Return the common program of all `operands`, and the operands as its variables.

    A body captures variables of enclosing programs.
    """
    body = body_being_built()
    if body is not None and any(v.recorder is not body for v in operands):
        operands = taken_in(body, list(operands))
    return common_recorder(operands), list(operands)


def body_being_built() -> Builder | None:
    """Return the body of a loop, a branch or a custom function being recorded, if any."""
    entered = innermost.get()
    if entered is None:
        return None
    recorder = active_recorder() if entered.mixed else entered.recorder
    return recorder if isinstance(recorder, Builder) and recorder.outer is not None else None


def taken_in(body: Builder, given: Any) -> Any:
    """Return `given` with variables of enclosing programs captured by `body`."""
    return map_variables(given, lambda v: v if v.recorder is body else v.captured_by(body))


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function on handles a public operator, which is a method of handles as well.

    >>> from primgraph.extend import lift, public
    >>> @public
    ... def thrice(x):
    ...     return 3.0 * lift(x)
    >>> thrice(np.array([1.0, 2.0]))
    tensor([3., 6.])
    >>> pg.tensor([1.0, 2.0]).thrice()
    tensor([3., 6.])
    """
    call = called[function] = functions[function.__name__.rstrip("_")] = handle_operator(function)
    return call


def namespace_operator(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function on handles an operator of a namespace, such as `pg.linalg`.

    Its name need not be unique: it is not a method, and not the replacement of NumPy's function of
    that name.
    """
    call = called[function] = handle_operator(function)
    return call


def handle_operator(function: Callable[P, R], *, users: bool = False) -> Callable[P, R]:
    """Make a function on variables a function on all handles.

    It records into the program of its operands; errors name the user's line and the operands.
    Python exceptions of a function that runs user code are not changed.
    """
    repeats = is_decided_by_types(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            for argument in args:
                applier = appliers.get(type(argument))
                if applier is not None:
                    applied: R = applier(function, args, kwargs)
                    return applied
            again = call_again(function, args, kwargs, _call_function) if repeats else None
            if again is not None:
                return cast("R", again)
            operands = handles((*args, *kwargs.values()) if kwargs else args)
            for operand in operands:
                if type(operand) in appliers:
                    return cast("R", appliers[type(operand)](function, args, kwargs))
            entered = _entered_recorder(operands)
            if entered is not None and not users:
                return cast("R", _call_function(entered, function, args, kwargs))
            if not operands and innermost.get() is None and object in appliers:
                return cast("R", appliers[object](function, args, kwargs))
            body = body_being_built() if operands else None
            if body is not None and any(v.recorder is not body for v in operands):
                args, kwargs = taken_in(body, args), taken_in(body, kwargs)
                operands = handles((*args, *kwargs.values()))
            recorder = common_recorder(operands)
            return cast("R", _apply_function(recorder, operands, function, args, kwargs, users))
        except PrimgraphError as error:
            raise error.located(_origin((*args, *kwargs.values()))) from None
        except UNFIT as error:
            if users or is_interruption(error):
                raise
            found = signature_error(function, args, kwargs)
            if found is None:
                found = ArgumentError(f"{function.__name__} does not take these arguments: {error}")
                found.__cause__ = error
            raise found.located(_origin((*args, *kwargs.values()))) from found.__cause__

    return call


def _entered_recorder(operands: Sequence[Variable]) -> Recorder | None:
    """Return the entered recorder if all `operands` are variables of it, in the usual manner."""
    context = innermost.get()
    if context is None or context.mixed or not operands:
        return None
    recorder = context.recorder
    for operand in operands:
        if type(operand) is not Variable or operand.recorder is not recorder:
            return None
    return recorder if manner() is Variable and is_on.get() else None


def _apply_function(
    recorder: Recorder,
    operands: Sequence[Variable],
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    users: bool,
) -> Any:
    """Call `function`, and return handles of the current class."""
    kind = manner()
    if kind is Variable:
        kind = kind_of(operands)
    if kind is Variable or users:
        return _call_function(recorder, function, args, kwargs, users)
    return _in_manner(kind, recorder, function, args, kwargs)


def _call_function(
    recorder: Recorder,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    users: bool = False,
) -> Any:
    """Call `function`, and return its results as distinct variables."""
    if recorder.in_call:
        return _record(recorder, function, *args, **kwargs)
    recorder.begin_call()
    try:
        recorder.in_call = not users
        result = _record(recorder, function, *args, **kwargs)
    finally:
        recorder.in_call = False
    return handed_out(result)


def _record(recorder: Recorder, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call `function` with `recorder` as the active recorder."""
    if not is_on.get() and isinstance(recorder, Builder) and recorder.written:
        with enable_tracking():
            result = _record(recorder, function, *args, **kwargs)
        return cast("R", map_variables(result, constant))
    entered = innermost.get()
    if entered is not None and entered.recorder is recorder and not entered.mixed:
        return function(*args, **kwargs)
    with recording(recorder):
        return function(*args, **kwargs)


def _in_manner(
    kind: type[Variable],
    recorder: Recorder,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `function` on plain variables, and convert its results to handles of the class
    `kind`."""
    args = tuple(kind.operands(function, args) or args)
    with use_variable_class(Variable):
        plain = {name: in_manner(Variable, a) for name, a in kwargs.items()}
        result = _call_function(recorder, function, in_manner(Variable, args), plain)
    return kind.returned(function, args, kwargs, in_manner(kind, result))


def hands_out(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function to return distinct variables."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = handles((*args, *kwargs.values()))
        recorder = next((v.recorder for v in given if isinstance(v, Variable)), None)
        if recorder is not None:
            if recorder.in_call:
                return function(*args, **kwargs)
            recorder.begin_call()
        return handed_out(function(*args, **kwargs))

    return call


def handed_out(result: R) -> R:
    """Return `result` with distinct variables, also in lists, tuples and dicts."""
    alone: Any = result
    if type(alone) is Variable:
        if alone.recorder.in_call:
            return result
        (value,) = alone.recorder.hand_out([alone.value])
        return result if value is alone.value else cast("R", Variable(alone.recorder, value))
    found: list[Variable] = []
    map_variables(result, found.append)
    if not found or found[0].recorder.in_call:
        return result
    recorder = found[0].recorder
    values = [v.value for v in found if v.recorder is recorder]
    given = recorder.hand_out(values)
    if given == values:
        return result
    left = iter(given)
    changed = map_variables(
        result, lambda v: type(v)(recorder, next(left)) if v.recorder is recorder else v
    )
    return cast("R", changed)


def _origin(arguments: Sequence[Any]) -> list[str]:
    """Return the lines for an error: the user's line, and the lines that computed the operands."""
    # Tensors in messages are operands, too; their applier adds their lines.
    variables = [v for v in handles(arguments) if isinstance(v, Variable)]
    for recorder in [v.recorder for v in variables]:
        if isinstance(recorder, Builder):
            return recorder.origin(recorder.source or caller(), [v.value for v in variables])
    return []


@final
class Operator(Op):
    """User-level op defined by its decomposition.

    `decompose` is a function on handles. Types are inferred from the decomposition, so that they
    always agree; they are cached by operand types and parameters.
    """

    __slots__ = ("_types", "decompose", "operands", "signature")

    def __init__(
        self, name: str, decompose: Callable[..., Variable], operands: tuple[str, ...]
    ) -> None:
        super().__init__(name)
        self.decompose = decompose
        self.operands = operands
        self.signature = inspect.signature(decompose)
        self._types: dict[Hashable, tuple[Types, Mapping[Condition, None]]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Variable:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        weak = self._weak_scalars(bound.arguments)
        inputs: list[Variable] = []
        params: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name not in self.operands or value is None or name in weak:
                params[name] = value
            elif self._is_variadic(name):
                inputs += [lift(v) for v in value]
            else:
                inputs.append(lift(value))
        recorder = active_recorder()
        if recorder.expands(self):
            return self.expand(inputs, params)
        return Variable(recorder, recorder.emit(self, [v.value for v in inputs], params)[0])

    def _is_variadic(self, name: str) -> bool:
        return self.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL

    def _weak_scalars(self, arguments: dict[str, Any]) -> set[str]:
        """Return the operands that are Python scalars beside an array: they stay weak as
        parameters."""
        given = {n: arguments[n] for n in self.operands if arguments.get(n) is not None}
        weak = {n for n, value in given.items() if type(value) in SCALARS}
        return weak if len(weak) < len(given) else set()

    def expand(self, inputs: Sequence[Variable], params: dict[str, Any]) -> Variable:
        """Record the decomposition of this op on `inputs`.

        Graphs of files may lack parameters that the operator has today: these have their defaults.
        """
        waiting = list(inputs)
        args: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = params[name] if name in params else waiting.pop(0)
            elif name in params:
                args.append(params[name])
            elif self._is_variadic(name):
                args += waiting
                waiting.clear()
            else:
                args.append(waiting.pop(0) if waiting else parameter.default)
        return self.decompose(*args, **named)

    def trace_decomposition(self, types: Types, params: dict[str, Any]) -> tuple[Builder, Variable]:
        """Record the decomposition on inputs of these types, in a new builder."""
        builder = Builder(self.name, source=caller(), expands=lambda op: True)
        inputs = [Variable(builder, builder.input(t)) for t in types]
        with builder:
            return builder, self.expand(inputs, params)

    def infer(self, types: Types, params: dict[str, Any]) -> Types:
        key = (types, bits(freeze_all(params.items())))
        if key not in self._types:
            try:
                with record_assumptions() as assumed:
                    self._types[key] = (self.trace_decomposition(types, params)[1].type,), assumed
            except PrimgraphError as error:
                # The recorder adds lines of the program, which are more useful than those of the
                # trace.
                error.origin = ()
                raise
        note(self._types[key][1])
        return self._types[key][0]

    def evaluate(self, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        types = tuple(TensorType(np.shape(a), np.asarray(a).dtype) for a in arrays)
        builder, output = self.trace_decomposition(types, params)
        return tuple(interpret(builder.graph([output.value]), *arrays))


def operator(*operands: str) -> Callable[[Callable[P, Variable]], Callable[P, Variable]]:
    """Make a decomposition on handles a public operator with these operands.

    A call records one equation; `lower` turns it into what the decorated function records.
    An operand that is None is left out, and one that is a Python scalar beside an array is
    recorded as a parameter. Raises `ArgumentError` for operands that are no parameters of it.

    >>> from primgraph.extend import operator
    >>> @operator("x")
    ... def double_tanh(x):
    ...     return pg.tanh(pg.tanh(x))
    >>> graph = pg.trace(double_tanh, pg.spec(3))
    >>> [eqn.op.name for eqn in graph.body]
    ['double_tanh']
    >>> [eqn.op.name for eqn in pg.transforms.lower(graph).body]
    ['tanh', 'tanh']
    """

    def declare(decompose: Callable[P, Variable]) -> Callable[P, Variable]:
        known = inspect.signature(decompose).parameters
        strange = [name for name in operands if name not in known]
        if strange:
            raise ArgumentError(
                f"operator: {decompose.__name__} has no parameter {strange[0]!r:.60}",
                hint=f"it takes ({', '.join(known)})",
            )
        op = Operator(decompose.__name__.rstrip("_"), decompose, operands)

        @public
        @decided_by_types
        @wraps(decompose)
        def call(*args: P.args, **kwargs: P.kwargs) -> Variable:
            return op(*args, **kwargs)

        return call

    return declare


def require_fixed(name: str, value: Any) -> None:
    """Raise `ArgumentError` for a variable as a static argument."""
    found = handles((value,))
    if found:
        static = next((h for v in found if isinstance(v, Variable) and (h := v._static_hint())), "")
        raise ArgumentError(
            f"{name} is fixed when the program is built; it cannot be a variable",
            hint=static or "give Python integers",
        )


def public_with_fixed(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function on handles a public operator with static arguments `names`.

    Arrays among these are converted to lists: beside tensors an array counts as data, which may
    change between calls.
    """

    def declare(function: Callable[P, R]) -> Callable[P, R]:
        call: Callable[..., R] = public(function)
        signature = inspect.signature(function)

        @wraps(function)
        def with_lists(*args: Any, **kwargs: Any) -> R:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return call(*args, **kwargs)
            for name in names:
                if isinstance(given.arguments.get(name), np.ndarray):
                    given.arguments[name] = given.arguments[name].tolist()
            return call(*given.args, **given.kwargs)

        functions[function.__name__] = with_lists
        return cast("Callable[P, R]", with_lists)

    return declare


def evaluation_params(op: Op, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return parameters of an equation with `training` off, in its graphs too; None if it is."""
    found = {name: change_graphs(value, evaluation_params) for name, value in params.items()}
    if isinstance(op, Operator) and found.get("training"):
        found["training"] = False
    return found if any(found[name] is not params[name] for name in params) else None
