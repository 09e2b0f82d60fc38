"""Scalar mode: a graph of a few numbers as arithmetic on Python floats.

A call of a NumPy function costs some hundred nanoseconds however little it computes, a Python
operator about ten. Arrays of a few elements are split into one variable per element, and joined
again for the results. Results are those of NumPy: arithmetic, sums and square roots to the bit,
other functions within one unit in the last place; only functions of the C library that are this
accurate are used. Matrix products add in the order of their terms, while BLAS may fuse operations.

Compilation decides by types and operations whether a graph is suitable. The code first checks
class, dtype and shape of its arguments. Where NumPy returns infinities and NaNs, Python arithmetic
raises one of two exceptions, which the code catches; special values in dropped terms, such as those
of structural zeros, are found by a check of the results, or of what bounded terms depend on. In all
cases it returns None, and the caller uses NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Schedule
from primgraph.codegen.lower.scalars.program import NumberProgram, number_program, number_trip
from primgraph.codegen.lower.scalars.simplify import in_order
from primgraph.codegen.ops.spelling.numbers import (
    ADD,
    ATOM,
    CONSTANT,
    NOT,
    UNARY,
    VARIABLE,
    WORDS,
    Number,
)
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.text.layout import WIDTH
from primgraph.codegen.targets.text.module import Function, Line, Module
from primgraph.ir.types import FLOAT64, TensorType

# Width of an expression within another one.
_WIDTH = 3 * WIDTH

_OPENING = (
    "import math",
    "ndarray, new_array, new_empty = np.ndarray, np.array, np.empty",
    "float64_dtype, bool_dtype = np.dtype(np.float64), np.dtype(np.bool_)",
    "float_inf, float_nan = np.inf, np.nan",
)


def scalar_function(
    schedule: Schedule, alone: bool = False, *, nested: bool = True
) -> tuple[list[str], Function] | None:
    """Return lines that bind names, and `scalar(*arrays)`, which returns the kernel's results.

    Results are in a list, unless there is a single one that is to be `alone`. Unless `nested`, each
    operation is a statement, which belongs to its step. The function returns None for arguments
    that are not arrays of exactly the declared types, and where NumPy's results would be special
    values. Return None if the graph is not one of a few floats and booleans, or
    has operations that are faster on arrays.
    """
    program = number_program(schedule, CARDS)
    if program is None:
        return None
    writer = _Writer(program, nested)
    made = Function("scalar", ", ".join(f"a{i}" for i in range(schedule.inputs)))
    for i, given in enumerate(program.inputs):
        _write_argument(made, f"a{i}", schedule.types[i], given)
    made.line("try:")
    made.body += writer.lines(in_order(program.needed), 1)
    made.body += writer.check(program.checked, 1)
    for k, value in enumerate(schedule.outputs):
        texts = [writer.text(x).code for x in program.results[k]]
        made.body += _result(f"r{k}", texts, schedule.types[value], 1)
    made.line("except (ArithmeticError, ValueError):")
    made.line("return None", depth=1)
    returned = ", ".join(f"r{k}" for k, _ in enumerate(schedule.outputs))
    made.returns([returned if alone else f"[{returned}]"])
    return [*_OPENING, *writer.bindings], made


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
    program = number_trip(graphs, CARDS)
    if program is None:
        return None
    writer = _Writer(program)
    function = _trips(writer, program, consts, carries, test is not None)
    opening = ["import numpy as np", *_OPENING, *writer.bindings]
    return Module(opening, [], [function], "numbers", {})


def _trips(
    writer: _Writer, program: NumberProgram, consts: int, carries: int, has_test: bool
) -> Function:
    made, names = Function("numbers", "fixed, state, rows"), program.inputs
    tests, found = program.results[:has_test], program.results[has_test:]
    for k in range(consts + carries):
        given = f"fixed[{k}]" if k < consts else f"state[{k - consts}]"
        made.line(f"[{', '.join(names[k])}] = {given}")
    stacks = range(len(found) - carries)
    for k in stacks:
        made.line(f"s{k} = []")
        # Creating an array from a flat list takes a third of the time of a list of rows.
        alone = len(found[carries + k]) == 1
        made.line(f"append{k} = s{k}.{'append' if alone else 'extend'}")
    made.line("n, ended = 0, False")
    made.line("try:")
    rows = [_row(x) for x in names[consts + carries :]]
    for line in _filled("for (", ["n", *rows], ",) in zip(*rows):"[bool(rows) :]):
        made.line(line, depth=1)
    if has_test:
        (truth,) = tests[0]
        made.body += writer.lines(in_order([truth, *program.finite[0], *program.ranged[0]]), 2)
        made.line(f"if not {writer.text(truth).operand_code(NOT)}:", depth=2)
        made.body += writer.check(program.finite[0], 3)
        made.body += writer.check_range(program.ranged[0], 3)
        made.line("ended = True", depth=3)
        made.line("break", depth=3)
    made.body += writer.lines(in_order(program.needed), 2)
    made.body += writer.check(program.checked, 2)
    for row in program.ranged:
        made.body += writer.check_range(row, 2)
    for k in stacks:
        made.line(f"append{k}({_row([writer.text(x).code for x in found[carries + k]])})", depth=2)
    _write_carries(made, writer, names[consts : consts + carries], found)
    made.line("else:", depth=1)
    made.line("n += 1", depth=2)
    made.line("except (ArithmeticError, ValueError):")
    made.line("return None", depth=1)
    ends = [f"[{', '.join(x)}]" for x in names[consts : consts + carries]]
    made.body += [Line(row) for row in _filled("ends = [", ends, "]")]
    made.body += [Line(row) for row in _filled("stacks = [", [f"s{k}" for k in stacks], "]")]
    made.returns(["ends, stacks, n, ended"])
    return made


def _write_carries(
    made: Function,
    writer: _Writer,
    names: Sequence[Sequence[str]],
    found: Sequence[Sequence[Number]],
) -> None:
    """Write the assignment of the carries that change."""
    pairs = [
        (name, writer.text(x).code)
        for row, numbers in zip(names, found, strict=False)
        for name, x in zip(row, numbers, strict=True)
    ]
    changed = [(name, text) for name, text in pairs if name != text]
    if not changed:
        made.line("pass", depth=2)
        return
    left, right = zip(*changed, strict=True)
    rows = [f"{', '.join(left)} = {', '.join(right)}"]
    if len(rows[0]) > WIDTH and len(changed) > 1:
        *above, last = _filled("(", left, ")")
        rows = [*above, *_filled(f"{last} = (", right, ")")]
    for row in rows:
        made.line(row, depth=2)


def _row(texts: Sequence[str]) -> str:
    """Return the expression of a row: a number, or a tuple."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


@final
class _Writer:
    """Printer of the expressions of a program.

    If `nested`, what is used once stands within the expression that uses it, unless that becomes
    too long. Names are used again for other values, as Python keeps memory for a hundred floats.
    """

    def __init__(self, program: NumberProgram, nested: bool = True) -> None:
        self.nested = nested
        order = in_order(program.needed)
        self.uses = Counter(a for x in order for a in x.args)
        # Checks of a test are repeated with those of the body.
        repeated = [*program.finite[:-1], *program.ranged[:-1]]
        self.uses.update([*program.needed, *(x for row in repeated for x in row)])
        words = [WORDS[x.word] for x in order if x.args]
        self.bindings = list(dict.fromkeys(word.binding for word in words if word.binding))
        self._texts: dict[Number, Text] = {}
        # The named values in an expression, how often each will still be read, and free names.
        self._read: dict[Number, list[Number]] = {}
        self._left = Counter(self.uses)
        self._free: list[str] = []
        self._count = 0

    def lines(self, order: Iterable[Number], depth: int) -> list[Line]:
        """Return the statements that compute numbers, without those that were computed before."""
        lines = []
        for x in order:
            if x in self._texts or not x.args:
                continue
            word = WORDS[x.word]
            pairs = zip(x.args, word.ranks, strict=True)
            code = word.text.format(*[self.text(a).operand_code(rank) for a, rank in pairs])
            self._texts[x] = Text(code, word.rank)
            self._read[x] = [y for a in x.args for y in self._read.get(a, ())]
            if not self.nested or self.uses[x] > 1 or len(code) > _WIDTH:
                name = self._new_name(self._read[x])
                lines.append(Line(f"{name} = {code}", x.step, depth))
                self._texts[x], self._read[x] = Text(name), [x]
        return lines

    def _new_name(self, read: Sequence[Number]) -> str:
        """Return a name for the value of an expression that reads these named ones."""
        for y in read:
            self._left[y] -= 1
            if not self._left[y]:
                self._free.append(self._texts[y].code)
        if self._free:
            return self._free.pop()
        self._count += 1
        return f"v{self._count - 1}"

    def text(self, x: Number) -> Text:
        """Return the text of a number whose operands have been written."""
        if x.word == VARIABLE:
            return Text(x.value)
        return _constant_text(x.value) if x.word == CONSTANT else self._texts[x]

    def check(self, finite: Sequence[Number], depth: int) -> list[Line]:
        """Return the statements that return None unless all these values are finite."""
        if not finite:
            return []
        total = " + ".join(self.text(x).operand_code(UNARY) for x in finite)
        return [
            Line(f"if ({total}) * 0.0 != 0.0:", -1, depth),
            Line("return None", -1, depth + 1),
        ]

    def check_range(self, integers: Sequence[Number], depth: int) -> list[Line]:
        """Return the statements that return None unless all these integers are of int64."""
        lines = []
        for x in integers:
            within = f"{-(2**63)} <= {self.text(x).operand_code(ADD)} <= {2**63 - 1}"
            lines += [Line(f"if not {within}:", -1, depth), Line("return None", -1, depth + 1)]
        return lines


def _constant_text(value: bool | int | float) -> Text:
    code = repr(value)
    for name in ("inf", "nan"):
        code = code.replace(name, f"float_{name}")
    return Text(code, UNARY if code.startswith("-") else ATOM)


def _write_argument(made: Function, given: str, type: TensorType, names: Sequence[str]) -> None:
    """Write the conversion of an argument to numbers."""
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    unfit = (
        f"{given}.__class__ is not ndarray or {given}.dtype is not {dtype} "
        f"or {given}.shape != {type.shape!r}"
    )
    if type.shape == () and type.dtype == FLOAT64:
        # It may be a Python float.
        made.line(f"if {given}.__class__ is float:")
        made.line(f"{names[0]} = {given}", depth=1)
        made.line(f"elif {unfit}:")
        made.line("return None", depth=1)
        made.line("else:")
        made.line(f"{names[0]} = {given}.item()", depth=1)
        return
    made.line(f"if {unfit}:")
    made.line("return None", depth=1)
    if type.size == 1:
        made.line(f"{names[0]} = {given}.item()")
    else:
        flat = given if len(type.shape) == 1 else f"{given}.ravel()"
        made.line(f"{', '.join(names)} = {flat}.tolist()")


def _result(name: str, texts: Sequence[str], type: TensorType, depth: int) -> list[Line]:
    """Return the fastest known statements that create a result from its elements."""
    if not type.shape:
        return [Line(f"{name} = new_array({texts[0]})", -1, depth)]
    if type.size > 1:
        shaped = "" if len(type.shape) == 1 else f".reshape({type.shape!r})"
        rows = _filled(f"{name} = new_array([", texts, f"]){shaped}")
        return [Line(row, -1, depth) for row in rows]
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    first = ", ".join("0" for _ in type.shape)
    rows = [f"{name} = new_empty({type.shape!r}, {dtype})", f"{name}[{first}] = {texts[0]}"]
    return [Line(row, -1, depth) for row in rows]


def _filled(head: str, texts: Sequence[str], tail: str) -> list[str]:
    """Return a display of expressions, broken into lines if too long."""
    whole = head + ", ".join(texts) + tail
    if len(whole) <= WIDTH:
        return [whole]
    rows = ["   "]
    for text in texts:
        if len(rows[-1]) + len(text) + 2 > WIDTH and rows[-1].strip():
            rows.append("   ")
        rows[-1] += f" {text},"
    return [head, *rows, tail]
