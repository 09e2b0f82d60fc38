"""primgraph compiles NumPy programs and their derivatives of any order into NumPy programs."""

from primgraph import extend, initializers, nn, operators, optimizer, transforms
from primgraph.checking import check_grads
from primgraph.codegen import Kernel
from primgraph.compiler import compile
from primgraph.defaults import get_default_dtype, set_default_dtype
from primgraph.derivatives import forward_grad, grad
from primgraph.differential import divergence, hessian_diagonal, laplacian
from primgraph.errors import (
    ArgumentError,
    BoundsError,
    BuildError,
    CheckError,
    CompileError,
    DTypeError,
    FeedError,
    IndexKindError,
    InternalError,
    LoadError,
    MissingRuleError,
    MixedSamplesError,
    NotDifferentiable,
    NotScalarError,
    OptionError,
    PrimgraphError,
    RunError,
    ShapeError,
)
from primgraph.executor import Executor
from primgraph.functional import hvp, jvp, vhp, vjp
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.ir.verify import verify
from primgraph.jacobian import Hessian, Jacobian, batched_jacobian, hessian, jacobian
from primgraph.operators import *  # noqa: F403
from primgraph.operators.variable import Variable
from primgraph.program import (
    Program,
    create_parameter,
    data,
    default_main_program,
    default_startup_program,
    program_guard,
)
from primgraph.scipy_objective import scipy_objective
from primgraph.scope import Scope
from primgraph.storage import load, save
from primgraph.tracing import spec, trace
from primgraph.training import fit, minibatches

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BoundsError",
    "BuildError",
    "Builder",
    "CheckError",
    "CompileError",
    "DTypeError",
    "Executor",
    "FeedError",
    "Graph",
    "Hessian",
    "IndexKindError",
    "InternalError",
    "Jacobian",
    "Kernel",
    "LoadError",
    "MissingRuleError",
    "MixedSamplesError",
    "NotDifferentiable",
    "NotScalarError",
    "OptionError",
    "PrimgraphError",
    "Program",
    "RunError",
    "Scope",
    "ShapeError",
    "TensorType",
    "Variable",
    "batched_jacobian",
    "check_grads",
    "compile",
    "create_parameter",
    "data",
    "default_main_program",
    "default_startup_program",
    "extend",
    "fit",
    "divergence",
    "forward_grad",
    "get_default_dtype",
    "grad",
    "hessian",
    "hessian_diagonal",
    "hvp",
    "initializers",
    "interpret",
    "jacobian",
    "jvp",
    "laplacian",
    "load",
    "minibatches",
    "nn",
    "optimizer",
    "parse",
    "program_guard",
    "save",
    "scipy_objective",
    "set_default_dtype",
    "spec",
    "trace",
    "transforms",
    "verify",
    "vhp",
    "vjp",
    *operators.__all__,
]
