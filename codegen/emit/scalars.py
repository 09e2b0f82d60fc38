"""Scalar mode: a graph of a few numbers as arithmetic on Python's floats.

A call of a NumPy function costs some hundred nanoseconds however little it computes, an operator
of Python's about ten. Arrays of a few elements are taken apart into names, one an element, and
put together again for the results. Results are those of NumPy: arithmetic, sums and square roots
to the bit, other functions within one unit in the last place, which is why only those of the C
library are used for which that holds.

Whether a graph is one for that is known when it is compiled, by its types and operations; whether
arguments are, by their class, dtype and shape, which the code looks at first. Where NumPy returns
infinities and NaNs, Python's arithmetic raises one of two exceptions, for which the code has the
only `try`. In both cases it returns None, and the caller computes everything with NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import final

import numpy as np

from primgraph.codegen.cards.scalar import CALL, Elements
from primgraph.codegen.cards.table import CARDS
from primgraph.codegen.emit.module import Function, Line
from primgraph.codegen.plan.schedule import Schedule, Step
from primgraph.ir.types import BOOL, FLOAT64, TensorType
from primgraph.ir.views import Slice

# Longer programs, those with more inputs, and longer vectors gain little beside what they take.
LONGEST = 500
WIDEST = 20
_MOST_ELEMENTS = 100

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHORT = re.compile(r"[\w.+-]+|\(-[\w.+-]+\)")


def scalar_function(schedule: Schedule, alone: bool = False) -> tuple[list[str], Function] | None:
    """Lines that bind names, and `scalar(*arrays)`, which gives the results of the kernel.

    They are in a list, unless there is only one, and that is to be `alone`. The function returns
    None for arguments that are not arrays of exactly the declared types, and where NumPy's results
    would be special values. None if the graph is not one of a few floats and booleans, or has
    operations that are faster on arrays.
    """
    if not 0 < len(schedule.steps) <= LONGEST or schedule.inputs > WIDEST:
        return None
    types = {schedule.types[v] for s in schedule.steps for v in (*s.inputs, *s.outputs)}
    types.update(schedule.types[: schedule.inputs])
    if not all(0 < t.size <= _MOST_ELEMENTS and t.dtype in (FLOAT64, BOOL) for t in types):
        return None
    return _Scalars(schedule, alone).function()


@final
class _Scalars:
    def __init__(self, schedule: Schedule, alone: bool) -> None:
        self.schedule = schedule
        self.alone = alone
        self.made = Function("scalar", ", ".join(f"x{i}" for i in range(schedule.inputs)))
        self.elements: dict[int, Elements] = {}
        self.computed: list[Line] = []
        # How many expressions there are, and for how many calls they stand.
        self.expressions = 0
        self.calls = 0
        # Values that may lie in memory from the last element to the first.
        self.reversed: set[int] = set()

    def function(self) -> tuple[list[str], Function] | None:
        """Names to bind, and the function; None if there is none, or it would not be faster."""
        for i in range(self.schedule.inputs):
            self._argument(i)
        for i, step in enumerate(self.schedule.steps):
            if not self._step(i, step) or self.expressions > LONGEST:
                return None
        if self.expressions > CALL * self.calls:
            return None
        if self.computed:
            self.made.line("try:")
            self.made.body += self.computed
            self.made.line("except (ArithmeticError, ValueError):")
            self.made.line("return None", depth=1)
        for k, value in enumerate(self.schedule.outputs):
            for line in _result(f"r{k}", self.elements[value], self.schedule.types[value]):
                self.made.line(line)
        results = ", ".join(f"r{k}" for k, _ in enumerate(self.schedule.outputs))
        self.made.returns([results if self.alone else f"[{results}]"])
        names = set(_NAME.findall("\n".join([line.text for line in self.made.body])))
        known = [line for n, line in _BINDINGS.items() if n in names]
        others = sorted(n for n in names if n.startswith("math_") and n not in _BINDINGS)
        return [*known, *(f"{n} = math.{n.removeprefix('math_')}" for n in others)], self.made

    def _argument(self, i: int) -> None:
        type = self.schedule.types[i]
        names = _names(i, type.size)
        unfit = _unfit(f"x{i}", type)
        if type.shape == () and type.dtype == FLOAT64:
            self._number(f"x{i}", names[0], unfit)
            self.elements[i] = _array(names, type)
            return
        self.made.line(f"if {unfit}:")
        self.made.line("return None", depth=1)
        if type.size == 1:
            self.made.line(f"{names[0]} = x{i}.item()")
        else:
            flat = f"x{i}" if len(type.shape) == 1 else f"x{i}.ravel()"
            self.made.line(f"{', '.join(names)} = {flat}.tolist()")
        self.elements[i] = _array(names, type)

    def _number(self, given: str, name: str, unfit: str) -> None:
        """Take one number, which may be Python's own."""
        self.made.line(f"if {given}.__class__ is float:")
        self.made.line(f"{name} = {given}", depth=1)
        self.made.line(f"elif {unfit}:")
        self.made.line("return None", depth=1)
        self.made.line("else:")
        self.made.line(f"{name} = {given}.item()", depth=1)

    def _step(self, i: int, step: Step) -> bool:
        """Write one equation, if it can be written."""
        card = CARDS.get(step.op)
        form = None if card is None else card.scalar
        if form is None:
            return False
        operands = [self.elements[v] for v in step.inputs]
        if form.texts is None:
            self.elements.update(zip(step.outputs, _moved(step, operands), strict=True))
            if _turns(step) or not self.reversed.isdisjoint(step.inputs):
                self.reversed.update(step.outputs)
            return True
        in_order = not step.inputs or step.inputs[0] not in self.reversed
        found = form.texts(step, operands, in_order)
        if found is None:
            return False
        value, texts = step.outputs[0], []
        names = _names(value, len(found))
        for name, text in zip(names, found, strict=True):
            if not _is_short(text):
                self.computed.append(Line(f"{name} = {text}", i, 1))
                self.expressions += form.weight
            texts.append(text if _is_short(text) else name)
        self.calls += 1
        self.elements[value] = _array(texts, step.results[0])
        return True


def _moved(step: Step, operands: Sequence[Elements]) -> list[Elements]:
    """The elements of the results of what moves elements, which says where it takes each from."""
    texts = np.concatenate([x.ravel() for x in operands])
    ends = np.cumsum([x.size for x in operands])
    places = [
        np.arange(end - x.size, end).reshape(x.shape) for x, end in zip(operands, ends, strict=True)
    ]
    taken = step.op.impl(*places, **step.params)
    taken = taken if step.op.multiple else [taken]
    pairs = zip(taken, step.results, strict=True)
    return [_array(texts[np.ravel(found)].tolist(), type) for found, type in pairs]


def _names(value: int, count: int) -> list[str]:
    """Names for the elements of a value."""
    return [f"v{value}"] if count == 1 else [f"v{value}_{k}" for k in range(count)]


def _array(texts: Sequence[str], type: TensorType) -> Elements:
    made = np.empty(type.size, object)
    made[:] = texts
    return made.reshape(type.shape)


def _unfit(name: str, type: TensorType) -> str:
    """The condition for an array not to be of that type."""
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    return (
        f"{name}.__class__ is not ndarray or {name}.dtype is not {dtype} "
        f"or {name}.shape != {type.shape!r}"
    )


def _result(name: str, elements: Elements, type: TensorType) -> list[str]:
    """Statements that make a result of its elements; the fastest known."""
    texts = elements.ravel().tolist()
    if not type.shape:
        return [f"{name} = new_array({texts[0]})"]
    if type.size > 1:
        flat = f"{name} = new_array([{', '.join(texts)}])"
        return [flat if len(type.shape) == 1 else f"{flat}.reshape({type.shape!r})"]
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    first = ", ".join("0" for _ in type.shape)
    return [f"{name} = new_empty({type.shape!r}, {dtype})", f"{name}[{first}] = {texts[0]}"]


def _turns(step: Step) -> bool:
    """Whether the elements of a result lie in the reverse order of those of the operand."""
    ranges = [r for how in step.form.seen if isinstance(how, Slice) for r in how.ranges]
    return any(r[2] < 0 for r in ranges) or any(n < 0 for n in step.params.get("steps", ()))


def _is_short(text: str) -> bool:
    """Whether an expression is a name or a number, which needs no name of its own."""
    return _SHORT.fullmatch(text) is not None


_BINDINGS = {
    "ndarray": "ndarray = np.ndarray",
    "float64_dtype": "float64_dtype = np.dtype(np.float64)",
    "bool_dtype": "bool_dtype = np.dtype(np.bool_)",
    "new_array": "new_array = np.array",
    "new_empty": "new_empty = np.empty",
    "ufunc_tanh": "ufunc_tanh = np.tanh",
    "float_of": "float_of = float",
    "float_inf": "float_inf = np.inf",
    "float_nan": "float_nan = np.nan",
    **{
        f"math_{name}": f"math_{name} = math.{name}"
        for name in (
            "fabs", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "cosh",
            "asin", "acos", "atan", "pow",
        )
    },
}  # fmt: skip
