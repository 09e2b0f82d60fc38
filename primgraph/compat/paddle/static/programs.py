"""Programs of Paddle's static mode: inputs, contexts in which they are built, descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from primgraph.compat.dtypes import LibraryDType
from primgraph.compat.paddle.core.defaults import dtype_or_default
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.framework import CPUPlace, paddles, reject_options
from primgraph.ir.dims import Dim
from primgraph.operators.variable import Variable
from primgraph.program.declarations import declare_input
from primgraph.program.program import Program as _Program
from primgraph.program.program import program_guard as _program_guard


@paddles
def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Variable:
    """Declare an input as `pg.data` does, by default of the default dtype of this package.

    None and -1 are known when arrays are fed. On axis 0 they stand for the batch, which is one size
    in the whole program; on other axes for one of their own.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [None, 3])
    >>> x.dtype
    paddle.float32
    """
    reject_options("data", lod_level=lod_level or None)
    if isinstance(shape, list | tuple) and shape and shape[0] in (None, -1):
        shape = ("batch", *shape[1:])
    return declare_input(name, shape, dtype_or_default(dtype))


def default_main_program() -> Any:
    """Return the program being built, which executors run if none is given.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     paddle.static.default_main_program() is program
    True
    """
    return building_program()


@contextmanager
def program_guard(
    main_program: _Program, startup_program: _Program | None = None
) -> Iterator[_Program]:
    """Build into `main_program`, initialized by `startup_program`, as `pg.program_guard` does.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [3])
    >>> [v.name for v in program.inputs.values()]
    ['x']
    """
    with _program_guard(main_program, startup_program):
        yield main_program


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Do nothing: names of operators have no effect here.

    >>> with paddle.static.name_scope("block"):
    ...     pass
    """
    yield


@contextmanager
def device_guard(device: str | None = None) -> Iterator[None]:
    """Compute on the CPU, which is the only device. Raises `OptionError` for another one.

    >>> with paddle.static.device_guard("cpu"):
    ...     pass
    """
    reject_options("device_guard", device=None if device in ("cpu", "all") else device)
    yield


@final
@dataclass(slots=True)
class InputSpec:
    """Shape, dtype and name of an argument of a function; None and -1 are sizes of any number.

    >>> paddle.static.InputSpec([None, 3], "float32", "x")
    InputSpec(shape=(-1, 3), dtype=paddle.float32, name=x, stop_gradient=False)
    """

    shape: Any
    dtype: Any = "float32"
    name: str | None = None
    stop_gradient: bool = False

    def __post_init__(self) -> None:
        self.shape = tuple(-1 if n is None else int(n) for n in self.shape)
        self.dtype = LibraryDType("paddle", self.dtype)

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """Return the description of a tensor."""
        sizes = [-1 if isinstance(n, Dim) else n for n in tensor.type.shape]
        return cls(sizes, tensor.dtype, name or getattr(tensor, "name", None))

    @classmethod
    def from_numpy(cls, ndarray: Any, name: str | None = None) -> InputSpec:
        """Return the description of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """Put a size in front of the shape; return the description."""
        self.shape = (batch_size, *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Drop the first size; return the description."""
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name}, "
            f"stop_gradient={self.stop_gradient})"
        )


def cpu_places(device_count: int | None = None) -> list[CPUPlace]:
    """Return the places of the CPU: one unless a number is given.

    >>> paddle.static.cpu_places(1)
    [Place(cpu)]
    """
    return [CPUPlace()] * (device_count or 1)


def cuda_places(device_ids: Any = None) -> list[Any]:
    """Return no places: all arrays are in the memory of the CPU.

    >>> paddle.static.cuda_places()
    []
    """
    return []
