"""Names of primgraph, written by tests/tools/stubs.py."""

from primgraph import autograd as autograd, distributed as distributed, eager as eager, extend as extend, fft as fft, initializers as initializers, interop as interop, linalg as linalg, nn as nn, optimizer as optimizer, random as random, scipy as scipy, solvers as solvers, special as special, transforms as transforms, tree as tree, view as view
from primgraph.api.derivatives.jets import biharmonic as biharmonic, jet as jet, partials as partials, taylor as taylor
from primgraph.api.derivatives.of_functions import jacfwd as jacfwd, jacrev as jacrev, value_and_grad as value_and_grad
from primgraph.api.derivatives.operators import divergence as divergence, hessian_diagonal as hessian_diagonal, laplacian as laplacian
from primgraph.api.derivatives.products import hvp as hvp, jvp as jvp, vhp as vhp, vjp as vjp
from primgraph.api.derivatives.sparse import sparse_hessian as sparse_hessian, sparse_jacobian as sparse_jacobian
from primgraph.api.derivatives.sparsity import hessian_sparsity as hessian_sparsity, jacobian_sparsity as jacobian_sparsity
from primgraph.api.jit import RecompilationWarning as RecompilationWarning, jit as jit
from primgraph.api.public import batched_jacobian as batched_jacobian, forward_grad as forward_grad, grad as grad, hessian as hessian, jacobian as jacobian
from primgraph.api.vmap import vmap as vmap
from primgraph.codegen.kernel import Kernel as Kernel
from primgraph.codegen.runtime.threads import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from primgraph.control.branches import cond as cond, switch as switch
from primgraph.control.checkpoints import checkpoint as checkpoint
from primgraph.control.loops import fori_loop as fori_loop, map as map, scan as scan, while_loop as while_loop
from primgraph.control.prefixes import associative_scan as associative_scan
from primgraph.control.solutions import fixed_point as fixed_point, root as root
from primgraph.custom.decorators import custom_gradient as custom_gradient, custom_jvp as custom_jvp, custom_vjp as custom_vjp
from primgraph.custom.function import Function as Function
from primgraph.defaults import config as config, get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype
from primgraph.derivatives.matrices.jacobian import Hessian as Hessian, Jacobian as Jacobian
from primgraph.derivatives.matrices.sparse_constants import sparse_matrix as sparse_matrix
from primgraph.derivatives.matrices.sparse_matrix import SparseMatrix as SparseMatrix
from primgraph.eager.derivatives.differentiable import TensorWarning as TensorWarning
from primgraph.eager.derivatives.manager import GradManager as GradManager
from primgraph.eager.derivatives.recording import enable_grad as enable_grad, inference_mode as inference_mode, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled
from primgraph.eager.exchange import from_dlpack as from_dlpack
from primgraph.eager.seeds import seed as seed
from primgraph.eager.tensor import Tensor as Tensor, tensor as tensor
from primgraph.errors import ArgumentError as ArgumentError, BoundsError as BoundsError, BuildError as BuildError, CheckError as CheckError, CompileError as CompileError, DTypeError as DTypeError, FeedError as FeedError, IndexKindError as IndexKindError, InternalError as InternalError, LinAlgError as LinAlgError, LoadError as LoadError, MissingMethodError as MissingMethodError, MissingRuleError as MissingRuleError, MixedSamplesError as MixedSamplesError, NotDifferentiable as NotDifferentiable, NotScalarError as NotScalarError, NumericalError as NumericalError, OptionError as OptionError, PrimgraphError as PrimgraphError, RunError as RunError, ShapeError as ShapeError, UnknownKeyError as UnknownKeyError, UnknownNameError as UnknownNameError, UnknownSizeError as UnknownSizeError, UnknownValueError as UnknownValueError, UnsupportedDTypeError as UnsupportedDTypeError, UnsupportedError as UnsupportedError
from primgraph.inspect.check import check_grads as check_grads
from primgraph.inspect.check_rules import check_rules as check_rules
from primgraph.inspect.cost import Cost as Cost, cost as cost
from primgraph.inspect.diff import Difference as Difference, diff as diff
from primgraph.inspect.explain import Explanation as Explanation, explain as explain
from primgraph.inspect.profile import Profile as Profile, profile as profile
from primgraph.ir.builder import Builder as Builder
from primgraph.ir.dims import Dim as Dim
from primgraph.ir.graph import Graph as Graph
from primgraph.ir.interpret import interpret as interpret
from primgraph.ir.text import parse as parse
from primgraph.ir.types import TensorType as TensorType
from primgraph.ir.verify import verify as verify
from primgraph.numpy.impure import TracingWarning as TracingWarning
from primgraph.operators.variable import Variable as Variable
from primgraph.program.compile import compile as compile
from primgraph.program.declarations import create_parameter as create_parameter, data as data
from primgraph.program.finite import check_finite as check_finite
from primgraph.program.program import Program as Program, default_main_program as default_main_program, default_startup_program as default_startup_program, program_guard as program_guard
from primgraph.program.run import Executor as Executor
from primgraph.program.save import load as load, save as save
from primgraph.program.scope import Scope as Scope
from primgraph.program.sized import SizedKernel as SizedKernel
from primgraph.program.trace import dim as dim, spec as spec, trace as trace
from primgraph.sparsity.coloring import coloring as coloring, symmetric_coloring as symmetric_coloring
from primgraph.sparsity.pattern import Pattern as Pattern
from primgraph.training.constraints import constraints as constraints
from primgraph.training.fit import fit as fit, minibatches as minibatches
from primgraph.training.scipy_objective import scipy_objective as scipy_objective
from primgraph.tree import register as register_container
from primgraph.view.formats.spy import spy as spy
from primgraph.view.growth import growth as growth
from primgraph.view.steps import steps as steps
from primgraph.operators import *

__version__: str
