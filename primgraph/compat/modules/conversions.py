"""Conversion of the parameters and buffers of a module: dtypes, modes and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from primgraph.compat.modules.walks import walk_members
from primgraph.eager.derivatives.recording import no_grad
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.types import as_dtype


class Conversions:
    """Methods of modules that change all parameters and buffers, or the mode of all modules."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def children(self) -> Iterator[Any]:
        """Yield the modules directly within, each once."""
        raise NotImplementedError

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace each parameter and buffer by `fn` of it; parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                with no_grad():
                    parameter.data = fn(parameter.data)
                    if parameter.grad is not None:
                        parameter.grad = fn(parameter.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floats and complex numbers to a dtype; a device is the CPU.

        The dtype is given as such, or by a tensor of it.

        >>> torch.nn.Linear(2, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        dtype = self._dtype_of(*args, **kwargs)
        return self if dtype is None else self._to_dtype(dtype)

    def _dtype_of(
        self,
        *targets: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        tensor: Any = None,
        memory_format: Any = None,
    ) -> Any:
        """Return the dtype among the arguments of `to`, and check the device."""
        for target in (*targets, tensor):
            if hasattr(target, "node"):
                dtype = target.dtype
            elif isinstance(target, str) or not _is_dtype(target):
                self._check_device(target)
            else:
                dtype = target
        self._check_device(device)
        if dtype is None:
            return None
        wanted = as_dtype(dtype)
        if wanted.kind not in "fc":
            raise ArgumentError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        return wanted

    def _check_device(self, device: Any) -> None:
        """Raise for a device other than the CPU."""
        if isinstance(device, str) and device.partition(":")[0] != "cpu":
            raise OptionError(f"there is no device {device!r:.60}: tensors are on the 'cpu'")

    def _to_dtype(self, dtype: Any) -> Self:
        def convert(x: Any) -> Any:
            return x.to(dtype) if x.dtype.kind in "fc" else x

        return self._apply(convert)

    def float(self) -> Self:
        """Convert floats to float32."""
        return self._to_dtype(as_dtype("float32"))

    def double(self) -> Self:
        """Convert floats to float64."""
        return self._to_dtype(as_dtype("float64"))

    def half(self) -> Self:
        """Convert floats to float16."""
        return self._to_dtype(as_dtype("float16"))

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype."""
        wanted = as_dtype(dst_type)
        return self._apply(lambda x: x.to(wanted))

    def cpu(self) -> Self:
        """Return the module: all tensors are in the memory of the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise `OptionError`: there are no other devices than the CPU."""
        self._check_device("cuda")
        return self

    def share_memory(self) -> Self:
        """Return the module: tensors are not shared between processes."""
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode, for this module and all within; return the module."""
        if not isinstance(mode, bool):
            raise ArgumentError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode, for this module and all within; return the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether parameters require a gradient; return the module."""
        for _, parameter in walk_members(self, "_parameters"):
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or set them to zero."""
        for _, parameter in walk_members(self, "_parameters"):
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach() * 0


def _is_dtype(target: Any) -> bool:
    if target is None:
        return False
    try:
        as_dtype(target)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True
