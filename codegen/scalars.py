"""Scalar mode: a graph of single numbers as arithmetic on Python's floats.

A call of a NumPy function costs some hundred nanoseconds however little it computes, an operator
of Python's about ten. Results are those of NumPy: arithmetic and square roots to the bit, other
functions within one unit in the last place, which is why only those of the C library are used for
which that holds. Python raises exceptions where NumPy returns infinities and NaNs; the caller then
computes everything with NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from primgraph.codegen.literals import scalar_text
from primgraph.codegen.module import Function
from primgraph.codegen.schedule import Schedule, Step
from primgraph.ir.types import BOOL, FLOAT64, TensorType

# Longer programs, and those with more inputs, gain little beside what they take.
LONGEST = 500
WIDEST = 20

_NAME = re.compile(r"[a-z][a-z0-9_]*")

Expression: TypeAlias = Callable[[Sequence[str], Step], str | None]


def scalar_function(schedule: Schedule, alone: bool = False) -> tuple[list[str], Function] | None:
    """Lines that bind names, and `scalar(*arrays)`, which gives the results of the kernel.

    They are in a list, unless there is only one, and that is to be `alone`.
    It raises an exception for what it cannot do: for arguments that are not arrays of exactly
    the declared types too. None if the graph is not one of single floats and booleans.
    """
    if not 0 < len(schedule.steps) <= LONGEST or schedule.inputs > WIDEST:
        return None
    types = {schedule.types[v] for s in schedule.steps for v in (*s.inputs, *s.outputs)}
    types.update(schedule.types[: schedule.inputs])
    if not all(t.size == 1 and t.dtype in (FLOAT64, BOOL) for t in types):
        return None
    function = Function("scalar", ", ".join(f"x{i}" for i in range(schedule.inputs)))
    text: dict[int, str] = {}
    for i in range(schedule.inputs):
        function.line(f"if {_unfit(f'x{i}', schedule.types[i])}:")
        function.line("    raise TypeError")
        function.line(f"v{i} = x{i}.item()")
        text[i] = f"v{i}"
    for i, step in enumerate(schedule.steps):
        for value, found in _values(step, [text[v] for v in step.inputs]).items():
            if found is None:
                return None
            text[value] = found
            if not _is_short(found):
                function.line(f"v{value} = {found}", i)
                text[value] = f"v{value}"
    for k, value in enumerate(schedule.outputs):
        for line in _result(f"r{k}", text[value], schedule.types[value]):
            function.line(line)
    results = ", ".join(f"r{k}" for k, _ in enumerate(schedule.outputs))
    function.line(f"return {results}" if alone else f"return [{results}]")
    names = set(_NAME.findall("\n".join(function.lines)))
    return [line for n, line in _BINDINGS.items() if n in names], function


def _unfit(name: str, type: TensorType) -> str:
    """The condition for an array not to be of that type."""
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    return (
        f"{name}.__class__ is not ndarray or {name}.dtype is not {dtype} "
        f"or {name}.shape != {type.shape!r}"
    )


def _result(name: str, text: str, type: TensorType) -> list[str]:
    """Statements that make a result of a number; the fastest known."""
    if not type.shape:
        return [f"{name} = new_array({text})"]
    dtype = "float64_dtype" if type.dtype == FLOAT64 else "bool_dtype"
    first = ", ".join("0" for _ in type.shape)
    return [f"{name} = new_empty({type.shape!r}, {dtype})", f"{name}[{first}] = {text}"]


def _values(step: Step, args: list[str]) -> dict[int, str | None]:
    rule = _RULES.get(step.op.name)
    if rule is None or (step.op.name == "concat" and len(args) != 1):
        return {step.outputs[0]: None}
    return {step.outputs[0]: rule(args, step)}


def _is_short(text: str) -> bool:
    """Whether an expression is a name or a number, which needs no name of its own."""
    return text.replace(".", "").replace("-", "").isalnum()


# Expressions of Python's for results, operand by operand.


def _template(template: str) -> Expression:
    return lambda args, step: template.format(*args)


def _same(args: Sequence[str], step: Step) -> str:
    return args[0]


def _power(args: Sequence[str], step: Step) -> str | None:
    """Small powers as NumPy computes them; others by the C library."""
    n, x = step.params["n"], args[0]
    if step.results[0].dtype != FLOAT64:
        return None
    short = {0: "1.0", 1: x, 2: f"{x} * {x}", -1: f"1.0 / {x}"}
    return short.get(n, f"math_pow({x}, {float(n)!r})")


def _full(args: Sequence[str], step: Step) -> str:
    return _number(step.params["value"], step.results[0])


def _constant(args: Sequence[str], step: Step) -> str:
    return _number(step.params["value"].data.item(), step.results[0])


def _number(value: bool | float, type: TensorType) -> str:
    text = scalar_text(value, type.dtype).replace("np.", "float_")
    return f"({text})" if text.startswith("-") else text


def _of_floats(template: str, other: str | None = None) -> Expression:
    """A rule for floats, and another, or none, for booleans."""

    def rule(args: Sequence[str], step: Step) -> str | None:
        chosen = template if step.operands[0].dtype == FLOAT64 else other
        return None if chosen is None else chosen.format(*args)

    return rule


def _cast(args: Sequence[str], step: Step) -> str:
    source, target = step.operands[0].dtype, step.results[0].dtype
    if source == target:
        return args[0]
    return f"{args[0]} != 0.0" if target == BOOL else f"1.0 if {args[0]} else 0.0"


# Sums of one number begin with plus zero in NumPy, products and others with the number itself.
_RULES: dict[str, Expression] = {
    "add": _of_floats("{} + {}"),
    "sub": _of_floats("{} - {}"),
    "mul": _of_floats("{} * {}"),
    "div": _of_floats("{} / {}"),
    "neg": _of_floats("-{}"),
    "abs": _of_floats("math_fabs({})"),
    "sqrt": _template("math_sqrt({})"),
    "rsqrt": _template("1.0 / math_sqrt({})"),
    "maximum": _of_floats("{0} if {0} > {1} or {0} != {0} else {1}"),
    "minimum": _of_floats("{0} if {0} < {1} or {0} != {0} else {1}"),
    "tanh": _template("float_of(ufunc_tanh({}))"),
    **{
        name: _template(f"math_{name}({{}})")
        for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "cosh")
    },
    "arcsin": _template("math_asin({})"),
    "arccos": _template("math_acos({})"),
    "arctan": _template("math_atan({})"),
    "integer_pow": _power,
    "equal": _template("{} == {}"),
    "not_equal": _template("{} != {}"),
    "less": _of_floats("{} < {}"),
    "less_equal": _of_floats("{} <= {}"),
    "greater": _of_floats("{} > {}"),
    "greater_equal": _of_floats("{} >= {}"),
    "logical_and": _template("{} and {}"),
    "logical_or": _template("{} or {}"),
    "logical_xor": _template("{} != {}"),
    "logical_not": _template("not {}"),
    "select": _template("{1} if {0} else {2}"),
    "cast": _cast,
    "full": _full,
    "constant": _constant,
    **dict.fromkeys(("stop_gradient", "reshape", "permute", "broadcast", "reverse"), _same),
    **dict.fromkeys(("concat", "reduce_max", "reduce_min"), _same),
    "reduce_prod": _of_floats("{}"),
    "reduce_sum": _of_floats("{} + 0.0"),
    "matmul": _of_floats("{} * {} + 0.0"),
}  # fmt: skip

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
