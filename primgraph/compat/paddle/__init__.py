"""The part of Paddle's API that its guide to derivatives of any order uses, by Paddle's names.

    import primgraph.compat.paddle as paddle

in place of `import paddle` is meant to be the only change to a program. Everything here is
primgraph under other names, with these differences from what it stands for:

- Programs are always static, lowered and compiled: the switches of modes and of primitives, and
  the conversions between operators and primitives, are not needed and change nothing.
- Each program has a scope and a random seed of its own. Running a startup program gives first
  values again; without it they are made where they are first used.
- The default dtype of this package is float32, whatever primgraph's own is.
- Losses are 0-d, and errors are primgraph's: an output that depends on no input is a
  `GradientError`, which is a RuntimeError, a bad feed a `FeedError`, which is a ValueError.

All functions have the parameters of Paddle's, in their order and with their defaults. A `name` is
taken and has no effect; options that there is nothing for are refused.
"""

from typing import TYPE_CHECKING, NoReturn

from primgraph.compat.paddle import incubate, nn, optimizer, static
from primgraph.compat.paddle.derivatives import grad
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
    get_default_dtype,
    in_dynamic_mode,
    int8,
    int16,
    int32,
    int64,
    seed,
    set_default_dtype,
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
    full,
    full_like,
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
    ones,
    ones_like,
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
    uniform,
    where,
    zeros,
    zeros_like,
)
from primgraph.errors import unknown_name

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph.compat.paddle", name, __all__)


__all__ = [
    "CPUPlace",
    "GradientError",
    "ParamAttr",
    "abs",
    "add",
    "add_n",
    "assign",
    "broadcast_to",
    "cast",
    "concat",
    "cos",
    "create_parameter",
    "disable_static",
    "divide",
    "enable_static",
    "equal",
    "erf",
    "exp",
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
    "less_equal",
    "less_than",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "nn",
    "norm",
    "not_equal",
    "ones",
    "ones_like",
    "optimizer",
    "pow",
    "reshape",
    "rsqrt",
    "scale",
    "seed",
    "set_default_dtype",
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
    "transpose",
    "uint8",
    "uniform",
    "where",
    "zeros",
    "zeros_like",
]
