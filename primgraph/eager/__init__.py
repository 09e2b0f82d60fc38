"""Lazy eager computation with tensors: synchronisation, debugging and the compilation log.

`pg.tensor` creates tensors. `sync` computes all pending tensors. Inside `debug`, each equation is
computed at once and checked for NaN. `log` lists the compiled structures with the reason for each
compilation.
"""

from typing import TYPE_CHECKING

from primgraph.operators.names import namespace

if TYPE_CHECKING:
    from primgraph.eager.compilation_log import Compilation as Compilation
    from primgraph.eager.compilation_log import Log as Log
    from primgraph.eager.compilation_log import log as log
    from primgraph.eager.evaluation_scope import debug as debug
    from primgraph.eager.evaluation_scope import sync as sync
    from primgraph.eager.operator_calls import apply as apply

else:
    __all__, __getattr__, __dir__ = namespace(__name__, globals())
