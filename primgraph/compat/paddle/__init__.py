"""The part of Paddle's API that its guide to derivatives of any order uses, by Paddle's names.

    import primgraph.compat.paddle as paddle

in place of `import paddle` is meant to be the only change to a program. Everything here is
primgraph under other names, with these differences from what it stands for:

- Static programs are always lowered and compiled: the switch of primitives, and the conversions
  between operators and primitives, are not needed and change nothing. In dynamic mode, which is
  the one at first, what is computed from tensors, and what is made from nothing outside of
  programs, are tensors: they compute eagerly.
- Each program has a scope and a random seed of its own. Running a startup program gives first
  values again; without it they are made where they are first used.
- The default dtype of this package is float32, whatever primgraph's own is.
- Losses are 0-d, and errors are primgraph's: an output that depends on no input is a
  `GradientError`, which is a RuntimeError, a bad feed a `FeedError`, which is a ValueError.

All functions have the parameters of Paddle's, in their order and with their defaults. A `name` is
taken and has no effect; options that there is nothing for are refused.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.paddle import autograd, incubate, nn, optimizer, static
from primgraph.compat.paddle.defaults import get_default_dtype, set_default_dtype
from primgraph.compat.paddle.derivatives import grad
from primgraph.compat.paddle.dynamic import Tensor, to_tensor
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
    arange,
    assign,
    broadcast_to,
    cast,
    concat,
    cos,
    divide,
    equal,
    erf,
    exp,
    eye,
    full,
    full_like,
    gather,
    greater_equal,
    greater_than,
    index_select,
    less_equal,
    less_than,
    linspace,
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
    ones,
    ones_like,
    pow,
    rand,
    randn,
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
    uniform,
    where,
    zeros,
    zeros_like,
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
    "is_grad_enabled",
    "less_equal",
    "less_than",
    "linspace",
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
