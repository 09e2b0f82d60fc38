"""Eager computation with tensors: when it happens, and what it costs.

`pg.tensor` makes tensors; here is what tells how they are computed: `sync` computes what has not
been yet, within `debug` each equation is computed at once and searched for NaN, and `log` has what
was compiled, and why.
"""

from primgraph.eager.apply import apply
from primgraph.eager.compilation_log import Compilation, Log, log
from primgraph.eager.evaluation_scope import debug, sync

__all__ = ["Compilation", "Log", "apply", "debug", "log", "sync"]


def __dir__() -> list[str]:
    return sorted(__all__)
