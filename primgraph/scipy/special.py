"""Special functions by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.special`. What has no
counterpart says so.
"""

from typing import Any

from primgraph.scipy.stand_in import stand_in

__all__, _find, __dir__ = stand_in("scipy.special", globals())


# A definition tells type checkers that a module has other names, too.
def __getattr__(name: str) -> Any:
    return _find(name)
