"""Sparsity of Jacobians: which elements of values may depend on which elements of inputs.

Dependencies are propagated forward: as affine maps if they are regular, else as rows of column
indices. Dependence means a derivative: `floor`, comparisons, constants and factors known to be zero
end it. The pattern is a superset of the nonzeros.

A Hessian has the pattern of the Jacobian of the gradient. This is tighter than pairing elements
that meet in a nonlinear equation: a division is linear in its numerator, and a product in either
factor. Only the derivative rule tells which of them occur in the gradient.
"""

from primgraph.transforms.dataflow.sparsity.pattern import MOST_PAIRS, dependencies, pattern_rows
from primgraph.transforms.dataflow.sparsity.walk import Reach

__all__ = ["MOST_PAIRS", "Reach", "dependencies", "pattern_rows"]
