"""User C for primitives: an expression of elements, or a call of a function of arrays."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from string import Formatter
from typing import Any, final

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.lower.nests.routines import FITS, ROUTINES
from primgraph.codegen.ops.c.call_lines import Call, Lines
from primgraph.codegen.ops.c.spellings import (
    CODES,
    FUNCTIONS,
    FUNCTIONS_OF_TWO,
    SPELLINGS,
    c_type,
)
from primgraph.codegen.runtime.toolchain import graph_keys
from primgraph.codegen.runtime.toolchain.compile_c import compiler, fault_of
from primgraph.errors import BuildError, CompileError, near_matches
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import FLOAT32, TensorType, as_dtype

_HINT = 'write it as in "hypot{f}({0}, {1})", or "smooth({0:double}, {out:double}, {0.size})"'


@check_arguments
def spell_c(
    op: Primitive[Any],
    text: str,
    *,
    code: str = "",
    dtypes: Sequence[str] = ("float64", "float32"),
) -> None:
    """Generate this C for `op` in native code, which otherwise calls NumPy for it.

    For an elementwise primitive `text` is an expression. `{0}`, `{1}` and so on stand for elements
    of the operands, `{T}` for the C type of the result. `{f}` is the suffix `f` of C library
    functions for floats, and empty for doubles. It is used for operands of these `dtypes`.

    For any other primitive it is a call of a function that returns 0, or another number if NumPy is
    to run instead. `{0:double}` is the pointer to an operand with that element type. `{out:double}`
    is the pointer to the result, or `{out0:double}` and so on for several. `{0.size}` and
    `{0.shape[1]}` are numbers of elements. Arrays are in row-major order. The call is used for
    operands and results of the types it names.

    `{name}` is the parameter of that name, a number or one of several, as in `{sizes[0]}`. `code`
    has what the text needs: static functions, and include directives.

    Raises `BuildError` for a primitive that has C already, for a text that names operands, results
    or parameters that the primitive has not, and for what the compiler refuses, if there is one.

    >>> from primgraph.extend import elementwise, spell_c
    >>> leg = elementwise("leg", np.hypot, operands=2)
    >>> spell_c(leg, "hypot{f}({0}, {1})")
    """
    if any(op in table for table in (SPELLINGS, FUNCTIONS, FUNCTIONS_OF_TWO, ROUTINES)):
        raise BuildError(f"spell_c: primitive {op.name} is written in C already")
    _require_c(op, text, code)
    graph_keys.spelled[op] = text, code, *dtypes
    if op.elementwise:
        elements = {as_dtype(name) for name in dtypes}
        SPELLINGS[op] = _element_spelling(text, elements)
    else:
        ROUTINES[op] = "biufc", _array_routine(text)
        FITS[op] = _fits(text)
    if code:
        CODES[op] = code


def _element_spelling(text: str, dtypes: set[Any]) -> Callable[[Sequence[str], Step], str | None]:
    def write_expression(args: Sequence[str], step: Step) -> str | None:
        types = [*step.operands, *step.results]
        params = _parameters(step.params)
        if not all(t.dtype in dtypes for t in types) or params is None:
            return None
        result = step.results[0].dtype
        words = {**params, "T": c_type(result), "f": "f" if result == FLOAT32 else ""}
        return _fill_template(step, text, [f"({a})" for a in args], words)

    return write_expression


def _array_routine(text: str) -> Lines:
    def lines(call: Call) -> Iterator[str]:
        found = _c_call(text, call.step, call)
        assert found is not None
        call.fail()
        yield f"if ({call.use(found)}) return 1;"

    return lines


def _fits(text: str) -> Callable[[Step], bool]:
    """Return a predicate: whether the call text supports a step."""

    def fits(step: Step) -> bool:
        return _c_call(text, step) is not None

    return fits


def _c_call(text: str, step: Step, call: Call | None = None) -> str | None:
    """Return the call, or None if it does not support the step's types or parameters."""
    params = _parameters(step.params)
    if params is None:
        return None
    arrays = [_Array(k, t, call) for k, t in enumerate((*step.operands, *step.results))]
    given, made = arrays[: len(step.operands)], arrays[len(step.operands) :]
    outs = {f"out{k}": a for k, a in enumerate(made)}
    try:
        return _fill_template(step, text, given, {**params, **outs, "out": made[0]})
    except TypeError:
        return None


def _fill_template(step: Step, text: str, given: Sequence[Any], words: Mapping[str, Any]) -> str:
    try:
        return text.format(*given, **words)
    except (KeyError, IndexError, AttributeError) as error:
        raise CompileError(
            f"the C of {step.op.name}, {text!r:.80}, names what it has not: {error}",
            hint=f"it has {len(given)} operands, and {', '.join(sorted(words))}",
        ) from None


@final
class _Array:
    """An array in a text: its pointer, formatted by type, its `size` and its `shape`.

    Without a `call` these are of no use, but that they exist.
    """

    def __init__(self, position: int, type: TensorType, call: Call | None) -> None:
        self.position, self.type, self.call = position, type, call

    def __format__(self, spec: str) -> str:
        if spec != c_type(self.type.dtype):
            raise TypeError(f"{self.type} has no elements of type {spec!r}")
        return "" if self.call is None else self.call.array(self.position, spec)

    @property
    def size(self) -> str:
        return self._size(prod(self.type.shape))

    @property
    def shape(self) -> list[str]:
        return [self._size(n) for n in self.type.shape]

    def _size(self, n: int) -> str:
        return "" if self.call is None else self.call.size(n)


def _parameters(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return parameters as C expressions; None if one is not a number."""
    found = {name: _number(value) for name, value in params.items()}
    return None if any(v is None for v in found.values()) else found


@final
class _Number(str):
    """A number in C; indexing it raises."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        raise IndexError(f"{self} is one number, and has no [{key}]")


def _number(value: Any) -> Any:
    match value:
        case bool():
            return _Number(int(value))
        case int():
            return _Number(value)
        case float():
            if math.isfinite(value):
                return _Number(f"({value!r})")
            return _Number("((double)NAN)" if value != value else f"({'-' * (value < 0)}INFINITY)")
        case tuple():
            inner = [_number(v) for v in value]
            return None if None in inner else inner
        case _:
            # A parameter that the call does not name may be anything.
            return ""


# Names in a text.


def _require_names(op: Primitive[Any], text: str, names: Iterable[str]) -> None:
    """Raise if a text names an operand, a result or a parameter that a primitive does not have."""
    if op.elementwise:
        own = ["T", "f"]
    else:
        own = ["out", *[f"out{k}" for k in range(_MOST_RESULTS if op.multiple else 1)]]
    count, known = _operands_of(op), _parameters_of(op)
    for name in names:
        if name.isdigit():
            if count is not None and int(name) >= count:
                raise BuildError(
                    f"spell_c: {text!r:.80} names {{{name}}}: {_takes(op, count)}", hint=_HINT
                )
        elif known is not None and name not in own and name not in known:
            told = [*(f"{{{n}}}" for n in known), *(f"{{{n}}}" for n in own[:2])]
            raise BuildError(
                f"spell_c: {text!r:.80} names {{{name}}}, which {op.name} has not",
                hint=near_matches(name, known) or f"beside operands it has {', '.join(told)}",
            )


# More than any primitive has: the number of results depends on types.
_MOST_RESULTS = 100


def _takes(op: Primitive[Any], count: int) -> str:
    last = f", {{0}} to {{{count - 1}}}" if count > 1 else ", {0}" if count else ""
    return f"{op.name} takes {count} operand{'s' * (count != 1)}{last}"


def _operands_of(op: Primitive[Any]) -> int | None:
    """Return the maximum number of operands, if a type rule or implementation tells."""
    for rule in (op.type_rule, op.impl):
        if isinstance(rule, np.ufunc):
            return rule.nin
        kinds = [p.kind for p in _signature(rule)]
        if kinds and _Kind.VAR_POSITIONAL not in kinds:
            return sum([kind in _BY_PLACE for kind in kinds])
    return None


def _parameters_of(op: Primitive[Any]) -> list[str] | None:
    """Return the names of parameters; None if any name is possible.

    A parameter that may be positional is one if its annotation is not that of an operand. The first
    positional parameter is an operand.
    """
    listed = _signature(op.type_rule)
    if any(p.kind is _Kind.VAR_KEYWORD for p in listed):
        return None
    behind = [p for p in listed if p.kind in _BY_PLACE][1:]
    either = [p for p in behind if p.kind is not _Kind.POSITIONAL_ONLY]
    return [
        *(p.name for p in either if "TensorType" not in str(p.annotation)),
        *(p.name for p in listed if p.kind is _Kind.KEYWORD_ONLY),
    ]


_Kind = inspect.Parameter
_BY_PLACE = (_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD)


def _signature(rule: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(rule).parameters.values())
    except (TypeError, ValueError):
        # C functions may have no signature.
        return []


# Trial compilation.

_TRIAL = """#include <math.h>
#include <stdint.h>
#include <string.h>
{code}
static {kind} pg_one({kind} x) {{ return x; }}
{head} {{ {unused} const {kind} pg_z = {text}; return pg_z + pg_one({text}); }}
"""


_NAME = re.compile(r"[A-Za-z_]\w*(\[\d+\])*")
_NAME_OR_EXTENT = re.compile(rf"{_NAME.pattern}|(\d+|out\d*)\.(size|shape\[\d+\])")


@final
class _Trial(Formatter):
    """Formatter of a text for trial compilation: elements and arrays become arguments."""

    def __init__(self, elementwise: bool) -> None:
        self.elementwise = elementwise
        self.arguments: dict[str, str] = {}
        # Field names without attributes and indices.
        self.names: dict[str, None] = {}

    def get_field(self, name: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
        self.names[re.split(r"[.\[]", name, maxsplit=1)[0]] = None
        is_array = name.isdigit() or (not self.elementwise and name.rstrip("0123456789") == "out")
        if is_array:
            argument = f"x{name}" if name.isdigit() else f"z{name[3:]}"
            self.arguments[argument] = "const double " if self.elementwise else "void *"
            return argument, name
        if not (_NAME if self.elementwise else _NAME_OR_EXTENT).fullmatch(name):
            raise ValueError(f"{name!r} is nothing that there is")
        return {"T": "double", "f": ""}.get(name, "1"), name

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion:
            raise ValueError(f"there are no conversions such as !{conversion}")
        return value

    def format_field(self, value: Any, spec: str) -> Any:
        if self.elementwise and spec:
            raise ValueError("elements have no types of their own")
        if value not in self.arguments or self.elementwise:
            return value
        if not spec:
            raise ValueError(f"what the elements of {value} are is not told")
        return f"({spec} *){value}"


def _require_c(op: Primitive[Any], text: str, code: str) -> None:
    trial = _Trial(op.elementwise)
    try:
        written = trial.vformat(text, (), {})
        if not written.strip():
            raise ValueError("there is nothing in it")
    except ValueError as error:
        raise BuildError(f"spell_c: {text!r:.80} is no text: {error}", hint=_HINT) from None
    if not op.elementwise and not any(name[0] == "z" for name in trial.arguments):
        raise BuildError(f"spell_c: {text!r:.80} leaves no result in {{out}}", hint=_HINT)
    _require_names(op, text, trial.names)
    if compiler() is None:
        return
    kind = "double" if op.elementwise else "int"
    arguments = ", ".join([f"{kind_of}{n}" for n, kind_of in trial.arguments.items()]) or "void"
    unused = " ".join(f"(void){n};" for n in trial.arguments)
    head = f"{kind} pg_trial({arguments})"
    fault = fault_of(_TRIAL.format(code=code, kind=kind, head=head, unused=unused, text=written))
    if fault:
        raise BuildError(f"spell_c: {text!r:.80} is no C:\n{fault}", hint=_HINT)
