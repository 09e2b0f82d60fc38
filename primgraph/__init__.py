"""primgraph compiles NumPy programs and their derivatives of any order into NumPy programs."""

from primgraph import initializers, operators, optimizer, transforms
from primgraph.codegen import Kernel
from primgraph.compiler import compile
from primgraph.defaults import get_default_dtype, set_default_dtype
from primgraph.derivatives import forward_grad, grad
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    BuildError,
    CompileError,
    DTypeError,
    FeedError,
    InternalError,
    LoadError,
    MissingRuleError,
    NotDifferentiable,
    PrimgraphError,
    RunError,
    ShapeError,
)
from primgraph.executor import Executor
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.ir.verify import verify
from primgraph.operators import *  # noqa: F403
from primgraph.operators.variable import Variable
from primgraph.program import (
    Program,
    create_parameter,
    data,
    default_main_program,
    program_guard,
)
from primgraph.scope import Scope
from primgraph.storage import load, save
from primgraph.tracing import spec, trace

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BoundsError",
    "BuildError",
    "Builder",
    "CompileError",
    "DTypeError",
    "Executor",
    "FeedError",
    "Graph",
    "InternalError",
    "Kernel",
    "LoadError",
    "MissingRuleError",
    "NotDifferentiable",
    "PrimgraphError",
    "Program",
    "RunError",
    "Scope",
    "ShapeError",
    "TensorType",
    "Variable",
    "compile",
    "create_parameter",
    "data",
    "default_main_program",
    "forward_grad",
    "get_default_dtype",
    "grad",
    "initializers",
    "interpret",
    "load",
    "optimizer",
    "parse",
    "program_guard",
    "save",
    "set_default_dtype",
    "spec",
    "trace",
    "transforms",
    "verify",
    *operators.__all__,
]
