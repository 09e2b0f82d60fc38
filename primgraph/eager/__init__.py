"""Lazy eager computation with tensors: synchronisation, debugging and the compilation log.

`pg.tensor` creates tensors. `sync` computes all pending tensors. Inside `debug`, each equation is
computed at once and checked for NaN. `log` lists the compiled structures with the reason for each
compilation.
"""

from primgraph.eager.apply import apply
from primgraph.eager.compilation_log import Compilation, Log, log
from primgraph.eager.evaluation_scope import debug, sync

__all__ = ["Compilation", "Log", "apply", "debug", "log", "sync"]


def __dir__() -> list[str]:
    return sorted(__all__)
