"""primgraph compiles NumPy programs and their derivatives of any order into NumPy programs."""

from typing import TYPE_CHECKING, NoReturn

from primgraph.checkout import ROOT

if ROOT is not None:
    __path__.append(str(ROOT))

from primgraph import extend, initializers, nn, operators, optimizer, transforms, view
from primgraph.autodiff.differential import divergence, hessian_diagonal, laplacian
from primgraph.autodiff.functions import hvp, jvp, vhp, vjp
from primgraph.autodiff.grad import forward_grad, grad
from primgraph.autodiff.jacobian import Hessian, Jacobian, batched_jacobian, hessian, jacobian
from primgraph.codegen import Kernel, get_num_threads, set_num_threads
from primgraph.defaults import get_default_dtype, set_default_dtype
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
    MissingMethodError,
    MissingRuleError,
    MixedSamplesError,
    NotDifferentiable,
    NotScalarError,
    NumericalError,
    OptionError,
    PrimgraphError,
    RunError,
    ShapeError,
    UnknownKeyError,
    UnknownNameError,
    near_matches,
    unknown_name,
)
from primgraph.inspect.check import check_grads
from primgraph.inspect.cost import Cost, cost
from primgraph.inspect.diff import Difference, diff
from primgraph.inspect.explain import Explanation, explain
from primgraph.inspect.profile import Profile, profile
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.ir.verify import verify
from primgraph.meanings import written_instead
from primgraph.operators import *  # noqa: F403
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile
from primgraph.program.finite import check_finite
from primgraph.program.program import (
    Program,
    create_parameter,
    data,
    default_main_program,
    default_startup_program,
    program_guard,
)
from primgraph.program.run import Executor
from primgraph.program.save import load, save
from primgraph.program.scope import Scope
from primgraph.program.trace import spec, trace
from primgraph.training.fit import fit, minibatches
from primgraph.training.scipy_objective import scipy_objective
from primgraph.view.growth import growth
from primgraph.view.spy import spy
from primgraph.view.steps import steps

if not TYPE_CHECKING:

    def __getattr__(name: str) -> NoReturn:
        raise unknown_name("primgraph", name, __all__, _instead(name))

    def __dir__() -> list[str]:
        return sorted(__all__)


def _instead(name: str) -> str:
    """Where else there is a thing of that name, or what stands for it; nothing if unknown."""
    rooms = (nn, optimizer, initializers, transforms, extend)
    for room in rooms:
        home = getattr(getattr(room, name, None), "__module__", "")
        if home.startswith(room.__name__):
            place = room.__name__.partition(".")[2]
            return f"there is pg.{place}.{name}. {near_matches(name, __all__)}".rstrip()
    return written_instead(name)


__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "BoundsError",
    "BuildError",
    "Builder",
    "CheckError",
    "CompileError",
    "Cost",
    "DTypeError",
    "Difference",
    "Executor",
    "Explanation",
    "FeedError",
    "Graph",
    "Hessian",
    "IndexKindError",
    "InternalError",
    "Jacobian",
    "Kernel",
    "LoadError",
    "MissingMethodError",
    "MissingRuleError",
    "MixedSamplesError",
    "NotDifferentiable",
    "NotScalarError",
    "NumericalError",
    "OptionError",
    "PrimgraphError",
    "Profile",
    "Program",
    "RunError",
    "Scope",
    "ShapeError",
    "TensorType",
    "UnknownKeyError",
    "UnknownNameError",
    "Variable",
    "batched_jacobian",
    "check_finite",
    "check_grads",
    "compile",
    "cost",
    "create_parameter",
    "data",
    "default_main_program",
    "default_startup_program",
    "extend",
    "fit",
    "diff",
    "divergence",
    "explain",
    "forward_grad",
    "get_default_dtype",
    "get_num_threads",
    "grad",
    "growth",
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
    "profile",
    "program_guard",
    "save",
    "scipy_objective",
    "set_default_dtype",
    "set_num_threads",
    "spec",
    "spy",
    "steps",
    "trace",
    "transforms",
    "verify",
    "vhp",
    "view",
    "vjp",
    *vars(operators)["__all__"],
]
