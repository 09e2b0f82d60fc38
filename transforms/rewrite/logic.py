"""Rules of `simplify` for logic, comparisons and `select`."""

from __future__ import annotations

from primgraph.primitives import logic
from primgraph.transforms.rewrite.row_conditions import integers, single
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family
from primgraph.transforms.rewrite.terms import Word, w, words, x, y, z

LOGIC = Family(any_dtype=True, late=True)
exact, finite = (rows(LOGIC, level) for level in ("exact", "finite"))

equal, not_equal, select = words(logic.equal, logic.not_equal, logic.select)
unless_nan = words(logic.unless_nan)[0]
less, less_equal = words(logic.less, logic.less_equal)
greater, greater_equal = words(logic.greater, logic.greater_equal)

# Logic.

exact(~~x, x)
exact(x & x, x)
exact(x & True, x)
exact(x & False, False)
exact(x | x, x)
exact(x | False, x)
exact(x | True, True)
exact(x ^ x, False)
exact(x ^ False, x)
exact(x ^ True, ~x)

# Comparisons. NaN compares false, except that it is unequal to itself.

exact(~equal(x, y), not_equal(x, y), single(equal(x, y)))
exact(~not_equal(x, y), equal(x, y), single(not_equal(x, y)))


def _opposites(one: Word, other: Word) -> None:
    """Declare two comparisons as each other's negation, except for NaN."""
    for first, second in ((one, other), (other, one)):
        exact(~first(x, y), second(x, y), integers(x), single(first(x, y)))
        finite(~first(x, y), second(x, y), single(first(x, y)))


_opposites(less, greater_equal)
_opposites(greater, less_equal)

exact(less(x, x), False)
exact(greater(x, x), False)
# For floats, `x == x` and `x != x` test for NaN, so programs that expect NaN use them: they stay at
# every level. `unless_nan`, which derivative rules insert, is dropped at "finite".
for _holds in (equal, less_equal, greater_equal):
    exact(_holds(x, x), True, integers(x), why="only NaN is unlike itself")
finite(less_equal(x, x), True)
finite(greater_equal(x, x), True)
exact(not_equal(x, x), False, integers(x))
finite(unless_nan(x, y), x)

# Select.

exact(select(True, x, y), x)
exact(select(False, x, y), y)
exact(select(x, y, y), y)
exact(select(x, select(x, y, z), w), select(x, y, w))
exact(select(x, y, select(x, z, w)), select(x, y, w))
exact(select(~x, y, z), select(x, z, y))
exact(select(x, True, False), x)
exact(select(x, False, True), ~x)
