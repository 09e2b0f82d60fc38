"""Which elements of a graph's values may depend on which elements of its inputs.

Dependencies are followed forth, equation by equation: as affine maps where they are regular, as
rows of columns else. "Depends" is meant by derivatives: floor, comparisons and what is held
constant end it, and so does a factor that is known to be zero. The answer is never too small.

A Hessian has the pattern of the Jacobian of the gradient. That is closer than pairs of elements
that meet in an equation that is not linear: a division is linear in its numerator, a product in
either factor, and only the rule of derivatives says what of it is left in the gradient.
"""

from primgraph.transforms.dataflow.sparsity.pattern import MOST_PAIRS, dependencies, pattern_rows
from primgraph.transforms.dataflow.sparsity.walk import Reach

__all__ = ["MOST_PAIRS", "Reach", "dependencies", "pattern_rows"]
