"""Functions of tensors, with torch's names for them and for their arguments."""

from primgraph.compat.torch.functions import elements, elementwise, products, reductions, shapes
from primgraph.compat.torch.functions.elements import *  # noqa: F403
from primgraph.compat.torch.functions.elementwise import *  # noqa: F403
from primgraph.compat.torch.functions.products import *  # noqa: F403
from primgraph.compat.torch.functions.reductions import *  # noqa: F403
from primgraph.compat.torch.functions.reductions import Extremes as Extremes
from primgraph.compat.torch.functions.shapes import *  # noqa: F403

__all__ = (
    elementwise.__all__ + elements.__all__ + products.__all__ + reductions.__all__ + shapes.__all__
)
