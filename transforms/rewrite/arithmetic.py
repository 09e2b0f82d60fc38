"""Rules of `simplify` for sums, products and quotients: neutral elements and signs."""

from __future__ import annotations

from primgraph.transforms.rewrite.row_conditions import (
    at_least_one,
    doubling,
    floats,
    integers,
    one_single,
    ordinary,
    power_of_two,
    single,
)
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import LEVELS, Family
from primgraph.transforms.rewrite.terms import a, b, c, x, y, z

ARITHMETIC = Family(late=True)
exact, signs, finite, fast = (rows(ARITHMETIC, level) for level in LEVELS)
# These also hold for complex numbers, part by part.
each = rows(ARITHMETIC, "exact", any_dtype=True)

# Bit-exact, also for NaN, infinities and signed zeros.

exact(x + -0.0, x)
each(x + -y, x - y, why="this is how subtraction is defined")

exact(x - 0.0, x)
each(x - -y, x + y)
exact(-0.0 - x, -x, why="for both zeros too")
exact(x - x, 0, integers(x), why="integers wrap round")

each(-(-x), x)  # noqa: B002
exact(-(c * x), x * -c, floats(x), why="only the sign of a product changes")

exact(1 * x, x)
exact(-1 * x, -x)
exact(c * -x, x * -c, floats(x))
exact(x * -y, -(x * y), floats(x))
exact(0 * x, 0, integers(x))
exact(a * (b * x), x * (a * b), integers(x), why="integers wrap round")
exact(
    a * (b * x), x * (a * b), doubling(a), doubling(b), ordinary(a * b),
    why="neither product rounds, and if one overflows so does the other; smaller powers of two "
    "can round twice where the result is denormal, or bring back what has overflowed",
)  # fmt: skip
exact(
    a * (b * x), x * (a * b), floats(x), doubling(b), at_least_one(a), ordinary(a * b),
    why="the inner product does not round, and where it overflows both are infinite",
)  # fmt: skip
exact(x + x, x * 2.0, floats(x), why="neither rounds, and other factors can join the product")

exact(x / 1, x)
exact(-x / y, -(x / y))
exact(x / -y, -(x / y))
exact(
    x / c, x * (1 / c), power_of_two(c), power_of_two(1 / c),
    why="both round the same real number once",
)  # fmt: skip

# Exact up to the sign of zero. Further rules for derivatives are in `signs.py`.

signs(x + 0, x, why="except for x = -0")

signs(x - 0, x)
signs(0 - x, -x)
signs(-x - y, -(x + y))
signs(-(x - y), y - x, single(x - y), why="the two zeros of equals have different signs")

# Valid without NaN, infinity, overflow and underflow.

finite(x - x, 0)

finite(0 * x, 0)

finite(x / x, 1)
finite(0 / x, 0)

# Valid in exact arithmetic.

fast(a * (b * x), x * (a * b), floats(x), ordinary(a * b), why="rounded once less")
fast(
    (a * x) * (b * y), (x * y) * (a * b),
    floats(x), ordinary(a * b), one_single(a * x, b * y),
    why="other factors can join the number",
)  # fmt: skip
fast(x / c, x * (1 / c), ordinary(1 / c), why="rounded once more")

# Common factors taken out of sums: true of real numbers only.

FACTORS = Family(late=True)
fast = rows(FACTORS, "fast")

# Saves one product, if the products have a single use.

fast(x * y + x * z, x * (y + z), floats(x), single(x * y), single(x * z))
fast(x * y - x * z, x * (y - z), floats(x), single(x * y), single(x * z))
fast(x + c * x, x * (1 + c), floats(x), single(c * x))
fast(x - c * x, x * (1 - c), floats(x), single(c * x))
fast(c * x - x, x * (c - 1), floats(x), single(c * x))

fast(a + (b + x), x + (a + b), floats(x))
fast(x * (1 / y), x / y, single(1 / y))
fast(x / (1 / y), x * y)
