"""How tensors become numbers, arrays and tensors of other dtypes, as in Paddle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from primgraph.compat.paddle.core.methods import DTYPES
from primgraph.compat.paddle.framework import RequirementError, checked_place
from primgraph.eager.inplace.views import View
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.ir.types import as_dtype
from primgraph.operators import astype
from primgraph.operators.handle import Handle


class Conversions(_Tensor):
    """Methods of Paddle's tensors that convert them."""

    __slots__ = ()

    # Augmented assignments give the name to a new tensor.

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]
        return self + other

    def __isub__(self, other: Any) -> Any:  # type: ignore[misc]
        return self - other

    def __imul__(self, other: Any) -> Any:  # type: ignore[misc]
        return self * other

    def __itruediv__(self, other: Any) -> Any:  # type: ignore[misc]
        return self / other

    def __ipow__(self, other: Any) -> Any:  # type: ignore[misc]
        return self**other

    def __imatmul__(self, other: Any) -> Any:  # type: ignore[misc]
        return self @ other

    # Conversions.

    def to(
        self,
        *targets: Any,
        device: Any = None,
        dtype: Any = None,
        blocking: Any = None,
        copy_tensor: Any = None,
    ) -> Any:
        """Convert to another dtype, given as such or by a tensor of it; a device is the CPU."""
        for target in targets:
            if isinstance(target, Handle):
                dtype = target.dtype
            elif str(target).removeprefix("paddle.") in DTYPES:
                dtype = target
            elif not isinstance(target, bool | None):
                checked_place("to", target)
        checked_place("to", device)
        return self if dtype is None else astype(self, as_dtype(dtype))

    def cuda(self, device_id: Any = None, blocking: bool = True) -> Any:
        """Raise `ArgumentError`, as all tensors are in the memory of the CPU."""
        return checked_place("cuda", "gpu")

    def pin_memory(self, blocking: bool = True) -> Any:
        """Return the tensor itself, as there is one memory."""
        return self

    def numpy(self, writable: bool = True) -> np.ndarray[Any, Any]:
        """Return a copy of the elements as an array."""
        return super().numpy()

    def item(self, *args: int) -> Any:
        """Return an element as a Python number: at an index, or of a tensor of one element."""
        if args:
            index = args[0] if len(args) == 1 else args
            return self.numpy().item(index)
        return super().item()

    def is_contiguous(self) -> bool:
        """Return whether the elements lie in memory in the order of their indices."""
        return not (isinstance(self._alias, View) and not self._alias.is_contiguous)

    def contiguous(self) -> Self:
        """Return itself, or a copy of a view whose elements lie in another order."""
        return self if self.is_contiguous() else self.clone()

    def value(self) -> Self:
        """Return the tensor itself."""
        return self

    def detach_(self) -> Self:
        """Make this tensor a constant for derivatives."""
        return super().detach_()

    def __bool__(self) -> bool:
        self._require_one("when used as the condition of if or while, a tensor has one element")
        return bool(self._array().item())

    def __float__(self) -> float:
        self._require_one("only one element variable can be converted to float")
        return float(self._array().item())

    def __int__(self) -> int:
        self._require_one("only one element variable can be converted to int")
        return int(self._array().item())

    def __len__(self) -> int:
        if not self.type.shape:
            raise RequirementError("len() of a 0-D tensor is wrong")
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Self]:
        return (self[i] for i in range(len(self)))

    def _require_one(self, rule: str) -> None:
        if self.type.size != 1:
            raise RequirementError(f"{rule}, and this is {self.type}")
