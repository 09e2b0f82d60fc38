"""Import tensors from other libraries by DLPack."""

from __future__ import annotations

from typing import Any

from primgraph.eager.tensor import Tensor, tensor
from primgraph.ir.frontend.dlpack import from_protocol
from primgraph.ir.frontend.signature import check_arguments


@check_arguments
def from_dlpack(x: Any, /) -> Tensor:
    """Return a tensor of the elements of an array of another library.

    `x` is any object with the DLPack methods `__dlpack__` and `__dlpack_device__`, in CPU memory.
    The elements are copied with shape and dtype.

    >>> pg.from_dlpack(np.arange(3.0)).sum()
    tensor(3.)

    Raises `ArgumentError` for an array on another device, and for objects without `__dlpack__`.
    """
    return tensor(from_protocol(x).copy())
