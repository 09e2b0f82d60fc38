"""primgraph compiles NumPy programs and their derivatives of any order into NumPy programs."""

from importlib import import_module
from typing import TYPE_CHECKING

from primgraph.base.checkout import ROOT
from primgraph.base.providers import providers

if ROOT is not None:
    __path__.append(str(ROOT))

from primgraph import initializers, operators, tree
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
    LinAlgError,
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
    UnknownSizeError,
    UnknownValueError,
    near_matches,
    unknown_name,
)
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import later
from primgraph.ir.text import parse
from primgraph.ir.types import TensorType
from primgraph.operators.call import appliers
from primgraph.operators.variable import Variable
from primgraph.program.program import (
    Program,
    default_main_program,
    default_startup_program,
    program_guard,
)
from primgraph.program.scope import Scope
from primgraph.program.trace import dim, spec, trace
from primgraph.tree import register as register_container

# Rarely used parts are imported on first access.
if TYPE_CHECKING:
    from primgraph import (
        autograd,
        distributed,
        eager,
        extend,
        fft,
        linalg,
        nn,
        optimizer,
        random,
        special,
        transforms,
        view,
    )
    from primgraph.api.derivatives.jets import biharmonic, jet, partials, taylor
    from primgraph.api.derivatives.of_functions import jacfwd, jacrev, value_and_grad
    from primgraph.api.derivatives.operators import divergence, hessian_diagonal, laplacian
    from primgraph.api.derivatives.products import hvp, jvp, vhp, vjp
    from primgraph.api.derivatives.sparse import sparse_hessian, sparse_jacobian
    from primgraph.api.derivatives.sparsity import hessian_sparsity, jacobian_sparsity
    from primgraph.api.jit import RecompilationWarning, jit
    from primgraph.api.public import batched_jacobian, forward_grad, grad, hessian, jacobian
    from primgraph.api.vmap import vmap
    from primgraph.codegen import Kernel, get_num_threads, set_num_threads
    from primgraph.control.branches import cond, switch
    from primgraph.control.checkpoints import checkpoint
    from primgraph.control.loops import fori_loop, map, scan, while_loop
    from primgraph.control.prefixes import associative_scan
    from primgraph.control.solutions import fixed_point, root
    from primgraph.custom.decorators import custom_gradient, custom_jvp, custom_vjp
    from primgraph.custom.function import Function
    from primgraph.derivatives.matrices.jacobian import Hessian, Jacobian
    from primgraph.derivatives.matrices.sparse_matrix import SparseMatrix
    from primgraph.eager.derivatives.differentiable import TensorWarning
    from primgraph.eager.derivatives.manager import GradManager
    from primgraph.eager.derivatives.recording import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        no_grad,
        set_grad_enabled,
    )
    from primgraph.eager.exchange import from_dlpack
    from primgraph.eager.seeds import seed
    from primgraph.eager.tensor import Tensor, tensor
    from primgraph.inspect.check import check_grads
    from primgraph.inspect.check_rules import check_rules
    from primgraph.inspect.cost import Cost, cost
    from primgraph.inspect.diff import Difference, diff
    from primgraph.inspect.explain import Explanation, explain
    from primgraph.inspect.profile import Profile, profile
    from primgraph.ir.verify import verify
    from primgraph.numpy.impure import TracingWarning
    from primgraph.operators import *  # noqa: F403
    from primgraph.program.compile import compile
    from primgraph.program.declarations import create_parameter, data
    from primgraph.program.finite import check_finite
    from primgraph.program.run import Executor
    from primgraph.program.save import load, save
    from primgraph.program.sized import SizedKernel
    from primgraph.sparsity.coloring import coloring, symmetric_coloring
    from primgraph.sparsity.pattern import Pattern
    from primgraph.training.constraints import constraints
    from primgraph.training.fit import fit, minibatches
    from primgraph.training.scipy_objective import scipy_objective
    from primgraph.view.formats.spy import spy
    from primgraph.view.growth import growth
    from primgraph.view.steps import steps

else:
    _HOMES = {
        "create_parameter": "primgraph.program.declarations",
        "data": "primgraph.program.declarations",
        "Cost": "primgraph.inspect.cost",
        "Difference": "primgraph.inspect.diff",
        "Executor": "primgraph.program.run",
        "Explanation": "primgraph.inspect.explain",
        "Function": "primgraph.custom.function",
        "GradManager": "primgraph.eager.derivatives.manager",
        "Hessian": "primgraph.derivatives.matrices.jacobian",
        "Jacobian": "primgraph.derivatives.matrices.jacobian",
        "Kernel": "primgraph.codegen",
        "Pattern": "primgraph.sparsity.pattern",
        "Profile": "primgraph.inspect.profile",
        "RecompilationWarning": "primgraph.api.jit",
        "SizedKernel": "primgraph.program.sized",
        "SparseMatrix": "primgraph.derivatives.matrices.sparse_matrix",
        "Tensor": "primgraph.eager.tensor",
        "TensorWarning": "primgraph.eager.derivatives.differentiable",
        "TracingWarning": "primgraph.numpy.impure",
        "associative_scan": "primgraph.control.prefixes",
        "batched_jacobian": "primgraph.api.public",
        "biharmonic": "primgraph.api.derivatives.jets",
        "check_finite": "primgraph.program.finite",
        "check_grads": "primgraph.inspect.check",
        "check_rules": "primgraph.inspect.check_rules",
        "checkpoint": "primgraph.control.checkpoints",
        "coloring": "primgraph.sparsity.coloring",
        "compile": "primgraph.program.compile",
        "cond": "primgraph.control.branches",
        "constraints": "primgraph.training.constraints",
        "cost": "primgraph.inspect.cost",
        "custom_gradient": "primgraph.custom.decorators",
        "custom_jvp": "primgraph.custom.decorators",
        "custom_vjp": "primgraph.custom.decorators",
        "diff": "primgraph.inspect.diff",
        "divergence": "primgraph.api.derivatives.operators",
        "enable_grad": "primgraph.eager.derivatives.recording",
        "explain": "primgraph.inspect.explain",
        "fit": "primgraph.training.fit",
        "fixed_point": "primgraph.control.solutions",
        "fori_loop": "primgraph.control.loops",
        "forward_grad": "primgraph.api.public",
        "from_dlpack": "primgraph.eager.exchange",
        "get_num_threads": "primgraph.codegen",
        "grad": "primgraph.api.public",
        "growth": "primgraph.view.growth",
        "hessian": "primgraph.api.public",
        "hessian_diagonal": "primgraph.api.derivatives.operators",
        "hessian_sparsity": "primgraph.api.derivatives.sparsity",
        "hvp": "primgraph.api.derivatives.products",
        "inference_mode": "primgraph.eager.derivatives.recording",
        "is_grad_enabled": "primgraph.eager.derivatives.recording",
        "jacfwd": "primgraph.api.derivatives.of_functions",
        "jacobian": "primgraph.api.public",
        "jacobian_sparsity": "primgraph.api.derivatives.sparsity",
        "jacrev": "primgraph.api.derivatives.of_functions",
        "jet": "primgraph.api.derivatives.jets",
        "jit": "primgraph.api.jit",
        "jvp": "primgraph.api.derivatives.products",
        "laplacian": "primgraph.api.derivatives.operators",
        "load": "primgraph.program.save",
        "map": "primgraph.control.loops",
        "minibatches": "primgraph.training.fit",
        "no_grad": "primgraph.eager.derivatives.recording",
        "partials": "primgraph.api.derivatives.jets",
        "profile": "primgraph.inspect.profile",
        "root": "primgraph.control.solutions",
        "save": "primgraph.program.save",
        "scan": "primgraph.control.loops",
        "scipy_objective": "primgraph.training.scipy_objective",
        "seed": "primgraph.eager.seeds",
        "set_grad_enabled": "primgraph.eager.derivatives.recording",
        "set_num_threads": "primgraph.codegen",
        "sparse_hessian": "primgraph.api.derivatives.sparse",
        "sparse_jacobian": "primgraph.api.derivatives.sparse",
        "spy": "primgraph.view.formats.spy",
        "steps": "primgraph.view.steps",
        "switch": "primgraph.control.branches",
        "symmetric_coloring": "primgraph.sparsity.coloring",
        "taylor": "primgraph.api.derivatives.jets",
        "tensor": "primgraph.eager.tensor",
        "value_and_grad": "primgraph.api.derivatives.of_functions",
        "vhp": "primgraph.api.derivatives.products",
        "vjp": "primgraph.api.derivatives.products",
        "vmap": "primgraph.api.vmap",
        "verify": "primgraph.ir.verify",
        "while_loop": "primgraph.control.loops",
    }
    _ROOMS = {
        "autograd",
        "distributed",
        "eager",
        "extend",
        "fft",
        "linalg",
        "nn",
        "optimizer",
        "random",
        "special",
        "transforms",
        "view",
    }

    # Modules that must be imported together with another one.
    _BESIDE = {"primgraph.derivatives.matrices.jacobian": "primgraph.api.public"}

    _OPERATORS = frozenset(operators.__all__)

    # What modules ask for that are below those that do it.
    providers.update(
        {
            "Taylor mode": "primgraph.derivatives.jets",
            "advice": "primgraph.operators.advice",
            "array API": "primgraph.array_api",
            "calls of NumPy": "primgraph.operators.numpy_calls",
            "calls of ufuncs": "primgraph.operators.numpy_ufuncs",
            "distributed objectives": "primgraph.distributed.objective",
            "distributed training": "primgraph.distributed.training",
            "evaluation": "primgraph.eager.steps",
            "kernels": "primgraph.codegen.kernel",
            "norms": "primgraph.operators.reduce.norms",
            "origins": "primgraph.ir.frontend.origins",
            "pictures": "primgraph.view",
            "pictures of patterns": "primgraph.view.formats.spy",
            "expressions of users": "primgraph.ir.frontend.user_expression",
            "random numbers": "primgraph.random",
            "scipy": "primgraph.scipy",
            "scipy.integrate": "primgraph.scipy.integrate",
            "scipy.linalg": "primgraph.scipy.linalg",
            "scipy.signal": "primgraph.scipy.signal",
            "scipy.special": "primgraph.scipy.special",
            "scipy.stats": "primgraph.scipy.stats",
            "sparse Jacobians": "primgraph.derivatives.matrices.sparse",
            "version": "primgraph",
        }
    )

    # Ops that only these declare.
    later += [
        "primgraph.custom.primitives",
        "primgraph.primitives.fourier",
        "primgraph.primitives.linear_algebra.assumptions",
        "primgraph.primitives.linear_algebra.cholesky",
        "primgraph.primitives.linear_algebra.matrix_functions",
        "primgraph.primitives.linear_algebra.spectra",
        "primgraph.primitives.linear_algebra.systems",
        "primgraph.primitives.linear_algebra.ties",
        "primgraph.primitives.running",
        "primgraph.primitives.sorting",
        "primgraph.primitives.windows",
        "primgraph.transforms",
    ]

    def _on_arrays(function: object, args: object, kwargs: object) -> object:
        """Apply a function to arrays only; the result is a tensor."""
        return import_module("primgraph.eager.apply").apply(function, args, kwargs)

    appliers[object] = _on_arrays

    def __getattr__(name: str) -> object:
        if name in _OPERATORS:
            return globals().setdefault(name, getattr(operators, name))
        if name in _ROOMS:
            return import_module(f"primgraph.{name}")
        if name in _HOMES:
            home = _HOMES[name]
            if home in _BESIDE:
                import_module(_BESIDE[home])
            return globals().setdefault(name, getattr(import_module(home), name))
        # Private names are not misspellings, and libraries look for many of them.
        instead = "" if name.startswith("_") else _instead(name)
        raise unknown_name("primgraph", name, __all__, instead)

    def __dir__() -> list[str]:
        return sorted(__all__)


def _instead(name: str) -> str:
    """Return where else a name exists, or its replacement; empty if unknown."""
    for place in ("nn", "optimizer", "initializers", "transforms", "extend"):
        room = import_module(f"primgraph.{place}")
        home = getattr(getattr(room, name, None), "__module__", "")
        if home.startswith(room.__name__):
            return f"there is pg.{place}.{name}. {near_matches(name, __all__)}".rstrip()
    found: str = import_module("primgraph.operators.advice").on_function(name)
    return found


__version__ = "1.0.0rc1"

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
    "Dim",
    "Executor",
    "Explanation",
    "FeedError",
    "GradManager",
    "Function",
    "Graph",
    "Hessian",
    "IndexKindError",
    "InternalError",
    "Jacobian",
    "Kernel",
    "LinAlgError",
    "LoadError",
    "MissingMethodError",
    "MissingRuleError",
    "MixedSamplesError",
    "NotDifferentiable",
    "NotScalarError",
    "NumericalError",
    "OptionError",
    "Pattern",
    "PrimgraphError",
    "Profile",
    "Program",
    "RecompilationWarning",
    "RunError",
    "Scope",
    "ShapeError",
    "SizedKernel",
    "SparseMatrix",
    "Tensor",
    "TensorType",
    "TensorWarning",
    "TracingWarning",
    "UnknownKeyError",
    "UnknownNameError",
    "UnknownSizeError",
    "UnknownValueError",
    "Variable",
    "associative_scan",
    "autograd",
    "batched_jacobian",
    "biharmonic",
    "check_finite",
    "check_grads",
    "check_rules",
    "checkpoint",
    "coloring",
    "compile",
    "cond",
    "constraints",
    "cost",
    "create_parameter",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "data",
    "default_main_program",
    "default_startup_program",
    "eager",
    "enable_grad",
    "extend",
    "fft",
    "fit",
    "diff",
    "dim",
    "distributed",
    "divergence",
    "explain",
    "fixed_point",
    "fori_loop",
    "forward_grad",
    "from_dlpack",
    "get_default_dtype",
    "get_num_threads",
    "grad",
    "growth",
    "hessian",
    "hessian_diagonal",
    "hessian_sparsity",
    "hvp",
    "inference_mode",
    "initializers",
    "interpret",
    "is_grad_enabled",
    "jacfwd",
    "jacobian",
    "jacobian_sparsity",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "laplacian",
    "linalg",
    "load",
    "map",
    "minibatches",
    "nn",
    "no_grad",
    "optimizer",
    "parse",
    "partials",
    "profile",
    "program_guard",
    "register_container",
    "save",
    "root",
    "scan",
    "scipy_objective",
    "random",
    "seed",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "sparse_hessian",
    "sparse_jacobian",
    "spec",
    "special",
    "spy",
    "steps",
    "switch",
    "taylor",
    "symmetric_coloring",
    "tensor",
    "trace",
    "transforms",
    "tree",
    "value_and_grad",
    "verify",
    "vhp",
    "view",
    "vjp",
    "vmap",
    "while_loop",
    *vars(operators)["__all__"],
]
