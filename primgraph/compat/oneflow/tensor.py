"""The tensor of OneFlow: torch's, which tells its dtype."""

from __future__ import annotations

from typing import ClassVar, final

from primgraph.compat.torch.creation import Creators
from primgraph.compat.torch.randomness import Generator as _Generator
from primgraph.compat.torch.randomness import RandomCreators
from primgraph.compat.torch.tensor import Tensor as _Tensor


@final
class Tensor(_Tensor):
    """`pg.Tensor` with OneFlow's methods and their arguments, which are those of torch."""

    __slots__ = ()
    _library: ClassVar[str] = "oneflow"


class Generator(_Generator):
    """Source of random numbers with a state of its own: torch's."""

    _family: ClassVar[type[_Tensor]] = Tensor


create = Creators(Tensor)
draw = RandomCreators(Tensor)
