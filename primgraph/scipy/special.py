"""Special functions by SciPy's names: SciPy's own on arrays, recorded with variables and tensors.

A function that is called with a variable or a tensor is that of `primgraph.special`. What has no
counterpart says so.
"""

from primgraph.scipy.stand_in import stand_in

__all__, __getattr__, __dir__ = stand_in("scipy.special", globals())
