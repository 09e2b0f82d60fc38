"""The tensor of OneFlow: torch's, which tells its dtype."""

from __future__ import annotations

from typing import ClassVar, final

from primgraph.compat.torch.creation import Creators, RandomCreators
from primgraph.compat.torch.tensor import Tensor as _Tensor


@final
class Tensor(_Tensor):
    """`pg.Tensor` with OneFlow's methods and their arguments, which are those of torch."""

    __slots__ = ()
    _library: ClassVar[str] = "oneflow"


create = Creators(Tensor)
draw = RandomCreators(Tensor)
