"""Arithmetic of single numbers: expressions as data, equal ones shared.

`WORDS` has a row for each operation: its text in Python, its precedence, its cost, and which
properties of operands pass to the result. `Numbers` creates expressions, and applies the rules that
keep every bit: constants are computed, and signs move outwards until a sum takes them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

# Precedence of Python's operators.
CHOICE, OR, AND, NOT, COMPARE, ADD, MUL, UNARY, ATOM = range(9)


class Word(NamedTuple):
    """An operation: `text` with its operands in braces, and the lowest precedence of each.

    `compute` is its value for constants. `cost` is that of so many operators. `binding` is a line
    that binds the names of the text. The sign of a zero among the operands `signed` may decide
    the sign of a zero result; without `negative_zero` there is no result -0.0. If one of the
    operands `spreads` is not finite, neither is the result, or Python raises. The magnitude of a
    result that is a number is at least `least` and at most `bound`.
    """

    text: str
    rank: int
    ranks: tuple[int, ...]
    compute: Callable[..., Any] | None
    signed: tuple[int, ...] = ()
    spreads: tuple[int, ...] = ()
    negative_zero: bool = True
    cost: int = 1
    binding: str = ""
    bound: float = math.inf
    least: float = 0.0


# The cost of a call of a function of the module `math`.
_FUNCTION = 3


def _comparison(text: str, compute: Callable[..., Any]) -> Word:
    return Word(f"{{}} {text} {{}}", COMPARE, (ADD, ADD), compute)


def _function(
    name: str,
    signed: bool,
    spreads: bool,
    negative_zero: bool = True,
    bound: float = math.inf,
    least: float = 0.0,
) -> Word:
    operand, compute = (0,), getattr(math, name)
    binding = f"math_{name} = math.{name}"
    return Word(
        f"math_{name}({{}})", ATOM, (CHOICE,), compute, operand * signed, operand * spreads,
        negative_zero, _FUNCTION, binding, bound, least,
    )  # fmt: skip


# No float is closer to a zero of the cosine than 4.6e-19 (Muller et al., Handbook of Floating-Point
# Arithmetic, 11.3.2).
_LEAST_COSINE = 1e-19
# Lower bounds are not larger, so that their differences are numbers.
_LARGE = 1e300

WORDS: dict[str, Word] = {
    "+": Word("{} + {}", ADD, (ADD, MUL), operator.add, (0, 1), (0, 1)),
    "-": Word("{} - {}", ADD, (ADD, MUL), operator.sub, (0, 1), (0, 1)),
    "*": Word("{} * {}", MUL, (MUL, UNARY), operator.mul, (0, 1), (0, 1)),
    "/": Word("{} / {}", MUL, (MUL, UNARY), operator.truediv, (0,), (0,)),
    "-x": Word("-{}", UNARY, (UNARY,), operator.neg, (0,), (0,)),
    # Of integers, rounded as NumPy does, and of booleans.
    "float": Word("{} * 1.0", MUL, (MUL,), float, negative_zero=False),
    "int": Word("{} + 0", ADD, (ADD,), int, negative_zero=False),
    "==": _comparison("==", operator.eq),
    "!=": _comparison("!=", operator.ne),
    ">": _comparison(">", operator.gt),
    ">=": _comparison(">=", operator.ge),
    "<": _comparison("<", operator.lt),
    "<=": _comparison("<=", operator.le),
    "and": Word("{} and {}", AND, (AND, NOT), lambda x, y: x and y),
    "or": Word("{} or {}", OR, (OR, AND), lambda x, y: x or y),
    "not": Word("not {}", NOT, (NOT,), operator.not_),
    "if": Word("{1} if {0} else {2}", CHOICE, (OR, OR, OR), None, (1, 2)),
    "fabs": _function("fabs", signed=False, spreads=True, negative_zero=False),
    "sqrt": _function("sqrt", signed=True, spreads=True),
    "exp": _function("exp", signed=False, spreads=False, negative_zero=False),
    "expm1": _function("expm1", signed=True, spreads=False),
    "log": _function("log", signed=False, spreads=True, negative_zero=False),
    "log1p": _function("log1p", signed=True, spreads=True),
    "sin": _function("sin", signed=True, spreads=True, bound=1.0),
    "cos": _function(
        "cos", signed=False, spreads=True, negative_zero=False, bound=1.0, least=_LEAST_COSINE
    ),
    "tan": _function("tan", signed=True, spreads=True),
    "cosh": _function("cosh", signed=False, spreads=True, negative_zero=False),
    "asin": _function("asin", signed=True, spreads=True),
    "acos": _function("acos", signed=False, spreads=True, negative_zero=False),
    "atan": _function("atan", signed=True, spreads=False, bound=2.0),
    "pow": Word(
        "math_pow({}, {})", ATOM, (CHOICE, CHOICE), math.pow, (0,), cost=_FUNCTION,
        binding="math_pow = math.pow",
    ),
    "erf": _function("erf", signed=True, spreads=False, bound=1.0),
    "erfc": _function("erfc", signed=False, spreads=False, negative_zero=False, bound=2.0),
    "atan2": Word(
        "math_atan2({}, {})", ATOM, (CHOICE, CHOICE), math.atan2, (0, 1), cost=_FUNCTION,
        binding="math_atan2 = math.atan2",
    ),
    # The C library's is less accurate than NumPy's.
    "tanh": Word(
        "float_of(ufunc_tanh({}))", ATOM, (CHOICE,), None, (0,), cost=40,
        binding="float_of, ufunc_tanh = float, np.tanh", bound=1.0,
    ),
}  # fmt: skip

CONSTANT, VARIABLE = "number", "name"


@final
class Number:
    """An expression: a word and its operands, or a constant or a variable, with its value or name.

    `place` is its position in the order of creation, behind its operands; `step` is the step that
    it belongs to, -1 for none. Its magnitude, if it is a number, is at least `least` and at most
    `most`. Without `negative_zero` its value is never -0.0. If it is `unsigned`, the sign of its
    zeros is of no importance, as it is in derivatives.
    """

    __slots__ = (
        "args", "least", "most", "negative_zero", "place", "step", "unsigned", "value", "word",
    )  # fmt: skip

    def __init__(
        self, word: str, args: tuple[Number, ...], value: Any, place: int, step: int, unsigned: bool
    ) -> None:
        self.word, self.args, self.value = word, args, value
        self.place, self.step, self.unsigned = place, step, unsigned
        self.least, self.most = _magnitudes(word, args, value)
        self.negative_zero = not self.least and _may_be_negative_zero(word, args, value)

    @property
    def is_zero(self) -> bool:
        """Return whether this is the constant 0.0 or -0.0."""
        return self.word == CONSTANT and self.value.__class__ is float and self.value == 0.0


def _magnitudes(word: str, args: Sequence[Number], value: Any) -> tuple[float, float]:
    """Return the least and the largest magnitude, as far as the operands tell.

    Rounding is monotonic: bounds round as values do.
    """
    match word:
        case "number":
            return (abs(float(value)),) * 2 if math.isfinite(value) else (0.0, math.inf)
        case "+" | "-":
            x, y = args
            return max(0.0, x.least - y.most, y.least - x.most), x.most + y.most
        case "*":
            least, most = args[0].least * args[1].least, args[0].most * args[1].most
            # The product of zero and infinity is no bound.
            return min(least, _LARGE), math.inf if math.isnan(most) else most
        case "-x" | "fabs":
            return args[0].least, args[0].most
    return (WORDS[word].least, WORDS[word].bound) if args else (0.0, math.inf)


def _may_be_negative_zero(word: str, args: Sequence[Number], value: Any) -> bool:
    """Return whether a result can be -0.0, as far as the last operation tells."""
    match word:
        case "number":
            return value.__class__ is float and value == 0.0 and math.copysign(1.0, value) < 0
        case "name":
            return True
        case "+":
            return args[0].negative_zero and args[1].negative_zero
        case "-" | "sqrt":
            return args[0].negative_zero
        case "*":
            return args[0] is not args[1]
        case "if":
            return args[1].negative_zero or args[2].negative_zero
    return WORDS[word].negative_zero


@final
class Numbers:
    """Creator of expressions; equal ones are one object. `step` is the step of new ones, which are
    `unsigned` or not.

    Expressions in `required` must be computed, and be finite, for the results to be right; those in
    `finite` must be finite if a result depends on them.
    """

    __slots__ = ("_known", "finite", "required", "step", "unsigned")

    def __init__(self) -> None:
        self._known: dict[Any, Number] = {}
        self.required: list[Number] = []
        self.finite: list[Number] = []
        self.step, self.unsigned = -1, False

    def constant(self, value: bool | int | float) -> Number:
        # The text tells zeros of both signs and True from 1.0.
        return self._shared((CONSTANT, repr(value)), CONSTANT, (), value)

    def variable(self, name: str) -> Number:
        return self._shared((VARIABLE, name), VARIABLE, (), name)

    def __call__(self, word: str, *args: Number) -> Number:
        """Return the expression, or a simpler one of exactly the same value."""
        if not any(x.word != CONSTANT for x in args):
            value = _computed(word, [x.value for x in args])
            if value is not None:
                return self.constant(value)
        rule = _EXACT.get(word)
        simpler = None if rule is None else rule(self, *args)
        if simpler is not None:
            return simpler
        places = [x.place for x in args]
        if word in ("+", "*"):
            places.sort()
        return self._shared((word, *places), word, args, None)

    def _shared(self, key: Any, word: str, args: tuple[Number, ...], value: Any) -> Number:
        found = self._known.get(key)
        if found is None:
            found = Number(word, args, value, len(self._known), self.step, self.unsigned)
            self._known[key] = found
        found.unsigned = found.unsigned and self.unsigned
        return found


def _computed(word: str, values: Sequence[Any]) -> bool | float | None:
    """Return the value of an operation of constants; None for special values and errors."""
    compute = WORDS[word].compute
    if compute is None:
        return None
    try:
        value: bool | float = compute(*values)
    except (ArithmeticError, ValueError):
        return None
    # Integers that leave the range of int64 are found where they are used.
    return value if value.__class__ is int or math.isfinite(value) else None


# Rules that keep every bit, the signs of zeros included. NaNs have no sign here.

_Rule: TypeAlias = Callable[..., "Number | None"]


def _add(new: Numbers, x: Number, y: Number) -> Number | None:
    if y.word == "-x":
        return new("-", x, y.args[0])
    if x.word == "-x":
        return new("-", y, x.args[0])
    for a, b in ((x, y), (y, x)):
        if _has_minus(b):
            return new("-", a, new("-x", b))
    for a, b in ((x, y), (y, x)):
        if a.is_zero and (a.negative_zero or not b.negative_zero):
            return b
    return None


def _sub(new: Numbers, x: Number, y: Number) -> Number | None:
    if y.word == "-x":
        return new("+", x, y.args[0])
    if _has_minus(y):
        return new("+", x, new("-x", y))
    return x if y.is_zero and not y.negative_zero else None


def _has_minus(x: Number) -> bool:
    """Return whether this is a product or quotient with a negative constant."""
    return x.word in ("*", "/") and any(a.word == CONSTANT and a.value < 0 for a in x.args)


def _mul(new: Numbers, x: Number, y: Number) -> Number | None:
    for a, b in ((x, y), (y, x)):
        if a.word == CONSTANT and a.value == 1.0:
            return b
        if a.word == CONSTANT and a.value == -1.0:
            return new("-x", b)
        if a.word == CONSTANT and b.word == "-x":
            return new("*", new("-x", a), b.args[0])
    if x.word == "-x":
        return new("-x", new("*", x.args[0], y))
    return new("-x", new("*", x, y.args[0])) if y.word == "-x" else None


def _div(new: Numbers, x: Number, y: Number) -> Number | None:
    if y.word == CONSTANT and y.value in (1.0, -1.0):
        return x if y.value == 1.0 else new("-x", x)
    if x.word == "-x":
        return new("-x", new("/", x.args[0], y))
    return new("-x", new("/", x, y.args[0])) if y.word == "-x" else None


def _neg(new: Numbers, x: Number) -> Number | None:
    if x.word == "-x":
        return x.args[0]
    if x.word in ("*", "/") and x.args[0].word == CONSTANT:
        return new(x.word, new("-x", x.args[0]), x.args[1])
    if x.word in ("*", "/") and x.args[1].word == CONSTANT:
        return new(x.word, x.args[0], new("-x", x.args[1]))
    return None


def _select(new: Numbers, condition: Number, x: Number, y: Number) -> Number | None:
    if condition.word == CONSTANT:
        return x if condition.value else y
    return x if x is y else None


def _not(new: Numbers, x: Number) -> Number | None:
    return x.args[0] if x.word == "not" else None


_EXACT: dict[str, _Rule] = {
    "+": _add, "-": _sub, "*": _mul, "/": _div, "-x": _neg, "if": _select, "not": _not,
}  # fmt: skip
