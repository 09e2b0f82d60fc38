"""Paddle's API of its guide to derivatives of any order.

    import primgraph.compat.paddle as paddle

Use it in place of `import paddle`; the rest of the program stays as it is. Functions have Paddle's
parameters, order and defaults. `name` has no effect; options that are not supported are refused.
Differences from Paddle:

- Static programs are always lowered and compiled. `enable_prim`, `prim2orig` and `orig2prim` change
  nothing. In dynamic mode, the default, tensors compute eagerly.
- Each program has its own scope and random seed. A startup program resets the initial values;
  without it they are made at first use.
- The default dtype of this package is float32, whatever primgraph's default is.
- Losses are 0-d. Errors are primgraph's: an output that depends on no input raises `GradientError`,
  a RuntimeError; a bad feed raises `FeedError`, a ValueError.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle import autograd, distribution, incubate, io, nn, optimizer, static
from primgraph.compat.paddle.creation import (
    arange,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    rand,
    randn,
    uniform,
    zeros,
    zeros_like,
)
from primgraph.compat.paddle.defaults import get_default_dtype, set_default_dtype
from primgraph.compat.paddle.derivatives import grad
from primgraph.compat.paddle.dynamic import Tensor, to_tensor
from primgraph.compat.paddle.files import load, save
from primgraph.compat.paddle.framework import (
    CPUPlace,
    GradientError,
    ParamAttr,
    create_parameter,
    disable_static,
    enable_static,
    float16,
    float32,
    float64,
    in_dynamic_mode,
    int8,
    int16,
    int32,
    int64,
    seed,
    uint8,
)
from primgraph.compat.paddle.tensor import (
    abs,
    add,
    add_n,
    assign,
    broadcast_to,
    cast,
    concat,
    cos,
    divide,
    equal,
    erf,
    exp,
    gather,
    greater_equal,
    greater_than,
    index_select,
    less_equal,
    less_than,
    log,
    matmul,
    max,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    norm,
    not_equal,
    pow,
    reshape,
    rsqrt,
    scale,
    sigmoid,
    sin,
    slice,
    split,
    sqrt,
    square,
    stack,
    strided_slice,
    subtract,
    sum,
    tanh,
    transpose,
    where,
)
from primgraph.eager.derivatives.recording import (
    enable_grad,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)

    def __dir__() -> list[str]:
        return sorted(__all__)


__all__ = [
    "CPUPlace",
    "GradientError",
    "ParamAttr",
    "Tensor",
    "abs",
    "add",
    "add_n",
    "arange",
    "assign",
    "autograd",
    "broadcast_to",
    "cast",
    "concat",
    "cos",
    "create_parameter",
    "disable_static",
    "distribution",
    "divide",
    "enable_grad",
    "enable_static",
    "equal",
    "erf",
    "exp",
    "eye",
    "float16",
    "float32",
    "float64",
    "full",
    "full_like",
    "gather",
    "get_default_dtype",
    "grad",
    "greater_equal",
    "greater_than",
    "in_dynamic_mode",
    "incubate",
    "index_select",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_grad_enabled",
    "less_equal",
    "less_than",
    "linspace",
    "load",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "nn",
    "no_grad",
    "norm",
    "not_equal",
    "ones",
    "ones_like",
    "optimizer",
    "pow",
    "rand",
    "randn",
    "reshape",
    "rsqrt",
    "save",
    "scale",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "sigmoid",
    "sin",
    "slice",
    "split",
    "sqrt",
    "square",
    "stack",
    "static",
    "strided_slice",
    "subtract",
    "sum",
    "tanh",
    "to_tensor",
    "transpose",
    "uint8",
    "uniform",
    "where",
    "zeros",
    "zeros_like",
]
