"""Variable: the handle on a value of a program, with the interface of an ndarray."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from primgraph.base.providers import late, provider
from primgraph.errors import ArgumentError, BuildError, UnknownValueError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive, Recorder, active_recorder
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.operators.handle import Handle, array_functions, object_for_sparse
from primgraph.operators.lazy_loading import all_functions

if TYPE_CHECKING:
    import unicodedata
else:
    unicodedata = late("unicodedata")


# What allows decisions by values, unlike a function that is traced.
_WITHOUT_JIT = "without pg.jit, pg.trace and pg.vmap, pg.grad(f) allows it"


def checked_name(name: Any) -> str:
    """Return `name`, if it may name an input or a variable.

    Raises `ArgumentError` for anything but a string, `BuildError` for an empty or very long one and
    for one with control, format or surrogate characters, which are invisible.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"a name is a string, not {type(name).__name__} {name!r:.80}")
    if not 0 < len(name) <= 200:
        raise BuildError(f"a name has 1 to 200 characters, {len(name)} given")
    plain = name.isascii() and name.isprintable()
    if not plain and any(unicodedata.category(c)[0] == "C" for c in name):
        raise BuildError(f"the name {name!r:.220} has characters that cannot be seen")
    return name


def _fold(name: str) -> str:
    """Return a name with characters that look alike replaced."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def refuse_twin(builder: Builder, name: str) -> None:
    """Raise for a name that is in use, or looks the same as one in use."""
    folded = _fold(name)
    for other in builder.names:
        if other == name:
            raise BuildError(
                f"the program has an input or variable named {name!r} already",
                origin=provider("origins").origins([(builder, builder.names[name])]),
                hint=f"reuse that variable, or choose another name than {name!r}",
            )
        if _fold(other) == folded:
            raise BuildError(f"the name {name!r} looks like {other!r}, which is taken")


@checked_methods("__init__", late=True)
class Variable(Handle):
    """Handle on one value of a program. Operations on it extend the program.

    Operators and methods are those of NumPy arrays, with broadcasting and promotion; Python scalars
    take the dtype of the array they meet. A variable has no elements before the program runs.
    Functions that take an array first are methods too: `x.tanh()`, `x.norm(axis=0)`, and `x.pow(2)`
    as torch and Paddle call it. Their `keepdim` is `keepdims`.

    A subclass has other manners, as one of `Tensor` has; see `use_variable_class`.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (3,))
    ...     y = x * 2.0 + 1.0
    >>> y.shape, y.dtype
    ((3,), dtype('float64'))
    """

    __slots__ = ("recorder", "value")

    _called = "a variable"

    def __init__(self, recorder: Recorder, value: Value) -> None:
        self.recorder = recorder
        self.value = value

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def shape(self) -> Shape:
        """Shape."""
        return self.value.type.shape

    @property
    def dtype(self) -> DType:
        """NumPy dtype of the elements."""
        return self.value.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.value.type.ndim

    @property
    def _is_traced(self) -> bool:  # type: ignore[override]
        return isinstance(self.recorder, Builder) and self.recorder.owner in ("function", "body")

    @property
    def name(self) -> str:
        """Given or automatic name, by which the variable can be fetched.

        It may be set once.
        """
        return self.recorder.name_of(self.value)

    @name.setter
    def name(self, name: str) -> None:
        self.recorder.rename(self.value, checked_name(name))

    @property
    def stop_gradient(self) -> bool:
        """Whether derivatives treat this variable as a constant; False by default.

        It is read when derivatives are taken, so it also affects values computed before it was set.
        Only this variable is constant, not an equal one.
        """
        return self.value in self.recorder.stopped

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        if not isinstance(stop, bool):
            raise ArgumentError(f"stop_gradient is True or False, not {stop!r:.60}")
        self.recorder.hold(self.value, stop)

    def detach(self) -> Variable:
        """Return the same numbers as a constant for differentiation; see `pg.stop_gradient`."""
        return self._dispatch("stop_gradient", self)

    def captured_by(self, body: Any) -> Variable:
        """Return the variable that stands for this one in a body, a builder, that captures it.

        Raises `BuildError` for a variable of a program that does not enclose the body.
        """
        around = body
        while around is not None and around is not self.recorder:
            around = around.outer
        if around is None and isinstance(self.recorder, Builder) and self.value not in body:
            raise provider("origins").outside(self.recorder, self.value, body)
        return Variable(body, body.own(self.value))

    @classmethod
    def operands(cls, function: Callable[..., Any], args: Sequence[Any]) -> Sequence[Any] | None:
        """Return other arguments for a function on handles of this class; None for the same."""
        return None

    @classmethod
    def returned(
        cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], found: Any
    ) -> Any:
        """Return the result of a function on handles of this class, possibly adapted."""
        return found

    def __repr__(self) -> str:
        name = f" {self.value.hint!r}" if self.value.hint else ""
        return f"<Variable{name} {self.type}>"

    def _repr_html_(self) -> str:
        home = importlib.import_module("primgraph.ir.frontend.html_tables")
        text: str = home.facts("Variable", self.recorder.described(self.value)).html()
        return text

    def __contains__(self, item: Any) -> bool:
        raise UnknownValueError(
            f"what a variable contains is not known {self._while}",
            hint=self._with_alternative("pg.any(x == item) is whether an element equals it"),
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ArgumentError(
            "a variable does not change: nothing can be assigned to its elements",
            hint=provider("advice").hint_assignment(
                masked=getattr(index, "dtype", None) in (bool, "bool")
            ),
        )

    def _require_open(self) -> None:
        """Raise `BuildError` for a variable of a function whose trace has ended."""
        if isinstance(self.recorder, Builder) and self.recorder.ended:
            raise provider("origins").leaked_error(self.recorder, self.value)

    def __bool__(self) -> bool:
        self._require_open()
        raise UnknownValueError(
            f"the truth of a variable is not known {self._while}",
            hint=self._with_alternative(
                (self._static_hint() if self._is_traced else "")
                or provider("advice").hint_truth_value()
            ),
        )

    def __float__(self) -> float:
        raise self._unknown_number()

    def __int__(self) -> int:
        # Integers have no derivative, so that they may be read where derivatives are taken.
        error = self._unknown_number()
        error.hint = self._with_alternative(error.hint)
        raise error

    def _unknown_number(self) -> UnknownValueError:
        self._require_open()
        return UnknownValueError(
            f"a variable has no number before {self._run} runs",
            hint="; ".join(filter(None, [self._number_hint(), self._static_hint()])),
        )

    @property
    def _run(self) -> str:
        """Return, for messages, what must run before it has a value."""
        return "the compiled function" if self._is_traced else "the program"

    @property
    def _while(self) -> str:
        """Return, for messages, when it has no value."""
        kind = "a function is traced" if self._is_traced else "the program is built"
        return f"while {kind}"

    def _with_alternative(self, *hints: str) -> str:
        """Join hints; in a traced function, say where values are known too."""
        is_function = isinstance(self.recorder, Builder) and self.recorder.owner == "function"
        return "; ".join(filter(None, [*hints, _WITHOUT_JIT if is_function else ""]))

    def _number_hint(self) -> str:
        otherwise = provider("advice").hint_value_use("convert", self._is_traced)
        hint: str = provider("advice").hint_number(array_functions(), otherwise)
        return hint

    def _static_hint(self) -> str:
        """Return advice if this is an argument of a traced function, or nothing."""
        value, builder = self.value, self.recorder
        if not isinstance(builder, Builder) or value.hint == "" or value not in builder.inputs:
            return ""
        # Arrays in containers are named by their path, such as `s.0` and `s[0]`.
        name = re.split(r"[.\[]", value.hint)[0]
        return (
            f"where {name!r} is an argument of a function under pg.jit, static_argnames={name!r} "
            "passes its value"
        )

    __index__ = __int__
    __complex__ = __float__

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        raise UnknownValueError(
            f"a variable has no number before {self._run} runs that {spec!r:.60} could format",
            hint=provider("advice").hint_value_use("format", self._is_traced),
        )

    def __reduce__(self) -> str:
        raise BuildError(
            "a variable cannot be pickled: it belongs to a program",
            hint="pg.save(program, path) writes the program with its parameters; arrays that a "
            "run returns, graphs and kernels can be pickled",
        )

    def copy(self, order: str = "C") -> Variable:
        """Return the same elements; see `pg.assign`. `order` has no effect."""
        return self._dispatch("assign", self)

    def fill(self, value: Any) -> None:
        """Raise, as variables are immutable."""
        raise ArgumentError(
            "a variable does not change: it cannot be filled",
            hint="pg.full_like(x, value) is a new one; in a function that is traced, "
            "x.fill(value) is as NumPy's",
        )

    def __copy__(self) -> Variable:
        return Variable(self.recorder, self.value)

    def __deepcopy__(self, memo: Any) -> Variable:
        """Return another handle on the same value, which is immutable."""
        return Variable(self.recorder, self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        self._require_open()
        if (found := object_for_sparse(self, sys._getframe(1))) is not None:
            return found
        raise UnknownValueError(
            f"a variable has no elements before {self._run} runs, so NumPy cannot read it",
            hint=provider("advice").hint_reading(all_functions(), array_functions()),
        )


# The class of the handles passed to user functions, and returned by operators.
_manner: ContextVar[type[Variable]] = ContextVar("primgraph_manner", default=Variable)


def manner() -> type[Variable]:
    """Return the current class of handles."""
    return _manner.get()


@contextmanager
def use_variable_class(kind: type[Variable]) -> Iterator[None]:
    """Use handles of the class `kind` within the context, while a function is traced."""
    before = _manner.get()
    try:
        _manner.set(kind)
        yield
    finally:
        _manner.set(before)


def handle_of(recorder: Recorder, value: Value) -> Variable:
    """Return a handle for a user function, of the current class."""
    return _manner.get()(recorder, value)


def kind_of(operands: Iterable[Any]) -> type[Variable]:
    """Return the class of the first operand of a subclass of `Variable`."""
    for operand in operands:
        if type(operand) is not Variable and isinstance(operand, Variable):
            return type(operand)
    return Variable


def map_variables(found: Any, change: Callable[[Variable], Any]) -> Any:
    """Return `found` with `change(v)` in place of each variable, in lists, tuples and dicts,
    too."""
    if isinstance(found, Variable):
        return change(found)
    if isinstance(found, list | tuple):
        items = [map_variables(item, change) for item in found]
        return type(found)(*items) if hasattr(found, "_fields") else type(found)(items)
    if type(found) is dict:
        return {name: map_variables(item, change) for name, item in found.items()}
    return found


def in_manner(kind: type[Variable], found: Any) -> Any:
    """Return `found` with its handles converted to the class `kind`."""
    return map_variables(found, lambda v: v if type(v) is kind else kind(v.recorder, v.value))


def handles(arguments: Iterable[Any]) -> list[Variable]:
    """Return the handles among `arguments`, including those in lists and tuples."""
    found: list[Any] = []
    for argument in arguments:
        if type(argument) is Variable or isinstance(argument, Handle):
            found.append(argument)
        elif isinstance(argument, list | tuple):
            found += handles(argument)
    return found


# Variables that stand for Python numbers: NumPy promotes these like Python numbers.


def as_weak(number: Variable) -> Variable:
    """Mark a variable as promoted like a Python number, which it stands for, and return it."""
    number.recorder.weak.add(number.value)
    return number


def keep_weak(result: Variable, *operands: Any) -> Variable:
    """Return the result of arithmetic, weak if there are only Python and weak numbers in it."""
    weak = [is_weak(x) for x in operands]
    if any(weak) and all(w or type(x) in (int, float) for w, x in zip(weak, operands, strict=True)):
        return as_weak(result)
    return result


def is_weak(x: Any) -> bool:
    """Return whether `x` is a variable that is promoted like a Python number."""
    return isinstance(x, Variable) and x.value in x.recorder.weak


def weak_type(number: Variable) -> type:
    """Return the class of the Python number that a weak variable stands for."""
    return float if number.dtype.kind == "f" else int


def emit(op: Primitive[Value], *operands: Variable, **params: Any) -> Variable:
    """Apply a primitive with one result to handles, and return a handle on the result.

    >>> from primgraph.extend import emit, lift, lookup
    >>> print(pg.trace(lambda x: emit(lookup("reduce_sum"), lift(x), axes=(0,)), pg.spec(3)))
    graph f(%x: f64[3]) {
      %0: f64[] = reduce_sum(%x, axes=(0,))
      return %0
    }
    """
    recorder = operands[0].recorder if operands else active_recorder()
    return Variable(recorder, recorder.emit(op, [v.value for v in operands], params)[0])


def emit_all(
    op: Primitive[tuple[Value, ...]], *operands: Variable, **params: Any
) -> tuple[Variable, ...]:
    """Apply a primitive with several results to handles."""
    recorder = operands[0].recorder
    results = recorder.emit(op, [v.value for v in operands], params)
    return tuple([Variable(recorder, v) for v in results])
