"""Rules of `clean_up` for forms that neither overflow nor cancel, which are not the fastest.

NumPy computes `log(1 + exp(x))` in less time than `logaddexp(x, 0)`, so that these rules
are applied where a graph is raised, and not where one is compiled.
"""

from __future__ import annotations

from primgraph.primitives import elementwise as e
from primgraph.transforms.rewrite.row_conditions import single
from primgraph.transforms.rewrite.rows import rows
from primgraph.transforms.rewrite.rule import Family
from primgraph.transforms.rewrite.terms import words, x

STABLE = Family()
fast = rows(STABLE, "fast")

exp, expm1, log, log1p = words(e.exp, e.expm1, e.log, e.log1p)
logaddexp, sigmoid = words(e.logaddexp, e.sigmoid)

fast(1 / (1 + exp(x)), sigmoid(-x))
fast(exp(x) / (1 + exp(x)), sigmoid(x))
fast(1 - sigmoid(x), sigmoid(-x), single(sigmoid(x)), why="nothing cancels")
fast(log1p(exp(x)), logaddexp(x, 0))
fast(log(sigmoid(x)), -logaddexp(-x, 0))
fast(exp(x) - 1, expm1(x), single(exp(x)), why="right for small x too")
fast(log(1 + x), log1p(x), why="right for small x too")
