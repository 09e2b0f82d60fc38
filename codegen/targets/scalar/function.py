"""Scalar mode: a graph of a few numbers as arithmetic on Python floats.

A call of a NumPy function costs some hundred nanoseconds however little it computes, a Python
operator about ten. Arrays of a few elements are split into one variable per element, and joined
again for the results. Results are those of NumPy: arithmetic, sums and square roots to the bit,
other functions within one unit in the last place; only functions of the C library that are this
accurate are used.

Compilation decides by types and operations whether a graph is suitable. The code first checks
class, dtype and shape of its arguments. Where NumPy returns infinities and NaNs, Python arithmetic
raises one of two exceptions, which the code catches. In both cases it returns None, and the caller
uses NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.spelling.scalar import CALL, Elements
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.text.module import Function, Line, Module
from primgraph.ir.types import BOOL, FLOAT64, TensorType
from primgraph.ir.views import Slice

# Limits of the program, the number of inputs, and the length of vectors: beyond these there is
# little gain.
LONGEST = 500
WIDEST = 20
_MOST_ELEMENTS = 100
# The same for a loop body, which is compiled for all iterations. Here a NumPy call stands for more
# expressions, as the numbers are in variables already.
_LONGEST_TRIP = 2000
_CALL_IN_TRIP = 20

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SHORT = re.compile(r"[\w.+-]+|\(-[\w.+-]+\)")


def scalar_function(schedule: Schedule, alone: bool = False) -> tuple[list[str], Function] | None:
    """Return lines that bind names, and `scalar(*arrays)`, which returns the kernel's results.

    Results are in a list, unless there is a single one that is to be `alone`. The function returns
    None for arguments that are not arrays of exactly the declared types, and where NumPy's results
    would be special values. Return None if the graph is not one of a few floats and booleans, or
    has operations that are faster on arrays.
    """
    if not 0 < len(schedule.steps) <= LONGEST or schedule.inputs > WIDEST:
        return None
    types = {schedule.types[v] for s in schedule.steps for v in (*s.inputs, *s.outputs)}
    types.update(schedule.types[: schedule.inputs])
    if any(t.dtype not in (FLOAT64, BOOL) or t.is_larger(_MOST_ELEMENTS) for t in types):
        return None
    if not all(t.size for t in types):
        return None
    return _Scalars(schedule, alone).function()


def scalar_trips(
    body: Schedule, consts: int, carries: int, test: Schedule | None = None
) -> Module | None:
    """Return a module with `numbers(fixed, state, rows)`, which runs iterations of a loop.

    It takes lists of the elements of constants and carries, and for each stack a list of rows,
    which are numbers or lists of numbers. It returns the carries, lists to be stacked, the
    iteration count, and whether `test` ended the loop. It returns None where NumPy's results would
    be special values. With a test, `rows` only limits the count. Return None if the body is not one
    of a few numbers.
    """
    graphs = [body] if test is None else [test, body]
    types = {t for graph in graphs for t in graph.types}
    if any(t.dtype not in (FLOAT64, BOOL) or t.is_larger(_MOST_ELEMENTS) for t in types):
        return None
    if not all(t.size for t in types):
        return None
    parts = [_Scalars(g, False, "t" if g is test else "v", 2) for g in graphs]
    inner = parts[-1]
    for part in parts:
        for i in range(part.schedule.inputs):
            part.elements[i] = inner.names_of(i)
        for i, step in enumerate(part.schedule.steps):
            if not part.add(i, step) or part.expressions > _LONGEST_TRIP:
                return None
    if any(part.expressions > _CALL_IN_TRIP * part.calls for part in parts):
        return None
    function = _trips(inner, consts, carries, None if test is None else parts[0])
    opening = ["import numpy as np", "import math", *_binding_lines([function])]
    return Module(opening, [], [function], "numbers", {})


def _trips(body: _Scalars, consts: int, carries: int, test: _Scalars | None) -> Function:
    made, count = Function("numbers", "fixed, state, rows"), body.schedule.inputs
    names = [body.names_of(i).tolist() for i in range(count)]
    found = [body.elements[v].ravel().tolist() for v in body.schedule.outputs]
    for k in range(consts + carries):
        given = f"fixed[{k}]" if k < consts else f"state[{k - consts}]"
        made.line(f"[{', '.join(_flat(names[k]))}] = {given}")
    stacks = range(len(found) - carries)
    for k in stacks:
        made.line(f"s{k} = []")
        # Creating an array from a flat list takes a third of the time of a list of rows.
        alone = len(found[carries + k]) == 1
        made.line(f"a{k} = s{k}.{'append' if alone else 'extend'}")
    made.line("n, ended = 0, False")
    made.line("try:")
    rows = [_row(_flat(x)) for x in names[consts + carries :]]
    made.line(f"for {tuple_text(['n', *rows])} in zip(*rows):", depth=1)
    if test is not None:
        made.body += test.computed
        (truth,) = test.elements[test.schedule.outputs[0]].ravel().tolist()
        made.line(f"if not {truth}:", depth=2)
        made.line("ended = True", depth=3)
        made.line("break", depth=3)
    made.body += body.computed
    for k in stacks:
        made.line(f"a{k}({_row(found[carries + k])})", depth=2)
    targets = [name for x in names[consts : consts + carries] for name in _flat(x)]
    pairs = zip(targets, [text for x in found[:carries] for text in x], strict=True)
    changed = [(name, text) for name, text in pairs if name != text]
    if not changed:
        made.line("pass", depth=2)
    else:
        left, right = (", ".join(texts) for texts in zip(*changed, strict=True))
        made.line(f"{left} = {right}", depth=2)
    made.line("else:", depth=1)
    made.line("n += 1", depth=2)
    made.line("except (ArithmeticError, ValueError):")
    made.line("return None", depth=1)
    ends = [f"[{', '.join(_flat(x))}]" for x in names[consts : consts + carries]]
    lists = [f"s{k}" for k in stacks]
    made.returns([f"[{', '.join(ends)}], [{', '.join(lists)}], n, ended"])
    return made


def _flat(names: Any) -> list[str]:
    return np.ravel(np.asarray(names, object)).tolist()


def _row(texts: Sequence[str]) -> str:
    """Return the expression of a row: a number, or a tuple."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _binding_lines(functions: Sequence[Function]) -> list[str]:
    """Return lines that bind the outer names that functions use."""
    lines = [line.text for function in functions for line in function.body]
    names = set(_NAME.findall("\n".join(lines)))
    known = [line for n, line in _BINDINGS.items() if n in names]
    others = sorted(n for n in names if n.startswith("math_") and n not in _BINDINGS)
    return [*known, *(f"{n} = math.{n.removeprefix('math_')}" for n in others)]


@final
class _Scalars:
    """Generator of a graph of numbers, expression by expression; names begin with `letter`."""

    def __init__(self, schedule: Schedule, alone: bool, letter: str = "v", depth: int = 1) -> None:
        self.schedule = schedule
        self.alone = alone
        self.letter, self.depth = letter, depth
        self.made = Function("scalar", ", ".join(f"x{i}" for i in range(schedule.inputs)))
        self.elements: dict[int, Elements] = {}
        self.computed: list[Line] = []
        # Number of expressions, and of array operations that they replace.
        self.expressions = 0
        self.calls = 0
        # Values whose elements may be in reverse memory order.
        self.reversed: set[int] = set()

    def function(self) -> tuple[list[str], Function] | None:
        """Return the bindings and the function; None if impossible or not faster."""
        for i in range(self.schedule.inputs):
            self._argument(i)
        for i, step in enumerate(self.schedule.steps):
            if not self.add(i, step) or self.expressions > LONGEST:
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
        return _binding_lines([self.made]), self.made

    def names_of(self, value: int) -> Elements:
        """Return variable names for the elements of a value."""
        type = self.schedule.types[value]
        return _array(_names(self.letter, value, type.size), type)

    def _argument(self, i: int) -> None:
        type = self.schedule.types[i]
        names = _names(self.letter, i, type.size)
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
        """Write the conversion of a scalar argument, which may be a Python float."""
        self.made.line(f"if {given}.__class__ is float:")
        self.made.line(f"{name} = {given}", depth=1)
        self.made.line(f"elif {unfit}:")
        self.made.line("return None", depth=1)
        self.made.line("else:")
        self.made.line(f"{name} = {given}.item()", depth=1)

    def add(self, i: int, step: Step) -> bool:
        """Write an equation; return whether that is possible."""
        card = CARDS.get(step.op)
        form = None if card is None else card.scalar
        if form is None:
            return False
        operands = [self.elements[v] for v in step.inputs]
        if form.texts is None:
            self.elements.update(zip(step.outputs, _move_elements(step, operands), strict=True))
            if _turns(step) or not self.reversed.isdisjoint(step.inputs):
                self.reversed.update(step.outputs)
            return True
        in_order = not step.inputs or step.inputs[0] not in self.reversed
        found = form.texts(step, operands, in_order)
        if found is None:
            return False
        value, texts = step.outputs[0], []
        names = _names(self.letter, value, len(found))
        for name, text in zip(names, found, strict=True):
            if not _is_short(text):
                self.computed.append(Line(f"{name} = {text}", i, self.depth))
                self.expressions += form.weight
            texts.append(text if _is_short(text) else name)
        self.calls += 1
        self.elements[value] = _array(texts, step.results[0])
        return True


def _move_elements(step: Step, operands: Sequence[Elements]) -> list[Elements]:
    """Return the elements of a step that moves elements, by evaluating it on indices."""
    texts = np.concatenate([x.ravel() for x in operands])
    ends = np.cumsum([x.size for x in operands])
    places = [
        np.arange(end - x.size, end).reshape(x.shape) for x, end in zip(operands, ends, strict=True)
    ]
    taken = step.op.impl(*places, **step.params)
    taken = taken if step.op.multiple else [taken]
    pairs = zip(taken, step.results, strict=True)
    return [_array(texts[np.ravel(found)].tolist(), type) for found, type in pairs]


def _names(letter: str, value: int, count: int) -> list[str]:
    name = f"{letter}{value}"
    return [name] if count == 1 else [f"{name}_{k}" for k in range(count)]


def _array(texts: Sequence[str], type: TensorType) -> Elements:
    made = np.empty(type.size, object)
    made[:] = texts
    return made.reshape(type.shape)


def _unfit(name: str, type: TensorType) -> str:
    """Return the condition that an array does not have that type."""
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    return (
        f"{name}.__class__ is not ndarray or {name}.dtype is not {dtype} "
        f"or {name}.shape != {type.shape!r}"
    )


def _result(name: str, elements: Elements, type: TensorType) -> list[str]:
    """Return the fastest known statements that create a result from its elements."""
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
    """Return whether a result has its elements in the reverse order of the operand's."""
    ranges = [r for how in step.form.seen if isinstance(how, Slice) for r in how.ranges]
    return any(r[2] < 0 for r in ranges) or any(n < 0 for n in step.params.get("steps", ()))


def _is_short(text: str) -> bool:
    """Return whether an expression is a name or a number, which needs no variable."""
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
