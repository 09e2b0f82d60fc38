"""Rules of `simplify` that factor common factors out of sums: exact for real numbers only."""

from __future__ import annotations

from primgraph.transforms.rules.conditions import floats, single
from primgraph.transforms.rules.rows import rows
from primgraph.transforms.rules.rule import Family
from primgraph.transforms.rules.terms import a, b, c, x, y, z

FACTORS = Family()
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
