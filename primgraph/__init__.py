"""primgraph compiles NumPy programs and their derivatives of any order into NumPy programs."""

from importlib import import_module

from primgraph.base.checkout import ROOT

if ROOT is not None:
    __path__.append(str(ROOT))

from primgraph.base.interpreter_limits import uncollected
from primgraph.errors import near_matches, unknown_name
from primgraph.operators.call import appliers
from primgraph.operators.names import declare, rows
from primgraph.program.trace import trace as trace

__version__ = "1.0.0rc1"

declare({
    "primgraph": {
        "primgraph.api.derivatives.jets": "biharmonic jet partials taylor",
        "primgraph.api.derivatives.of_functions": "jacfwd jacrev value_and_grad",
        "primgraph.api.derivatives.operators": "divergence hessian_diagonal laplacian",
        "primgraph.api.derivatives.products": "hvp jvp vhp vjp",
        "primgraph.api.derivatives.sparse": "sparse_hessian sparse_jacobian",
        "primgraph.api.derivatives.sparsity": "hessian_sparsity jacobian_sparsity",
        "primgraph.api.jit": "RecompilationWarning jit",
        "primgraph.api.public": "batched_jacobian forward_grad grad hessian jacobian",
        "primgraph.api.vmap": "vmap",
        "primgraph.autograd": ".",
        "primgraph.codegen.kernel": "Kernel",
        "primgraph.codegen.runtime.threads": "get_num_threads set_num_threads",
        "primgraph.control.branches": "cond switch",
        "primgraph.control.checkpoints": "checkpoint",
        "primgraph.control.loops": "fori_loop map scan while_loop",
        "primgraph.control.prefixes": "associative_scan",
        "primgraph.control.solutions": "fixed_point root",
        "primgraph.custom.decorators": "custom_gradient custom_jvp custom_vjp",
        "primgraph.custom.function": "Function",
        "primgraph.defaults": "config get_default_dtype set_default_dtype",
        "primgraph.derivatives.matrices.jacobian": "Hessian Jacobian",
        "primgraph.derivatives.matrices.sparse_constants": "sparse_matrix",
        "primgraph.derivatives.matrices.sparse_matrix": "SparseMatrix",
        "primgraph.distributed": ".",
        "primgraph.eager": ".",
        "primgraph.eager.derivatives.differentiable": "TensorWarning",
        "primgraph.eager.derivatives.manager": "GradManager",
        "primgraph.eager.derivatives.recording": """
            enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled
            """,
        "primgraph.eager.exchange": "from_dlpack",
        "primgraph.eager.seeds": "seed",
        "primgraph.eager.tensor": "Tensor tensor",
        "primgraph.errors": """
            ArgumentError BoundsError BuildError CheckError CompileError DTypeError FeedError
            IndexKindError InternalError LinAlgError LoadError MissingMethodError MissingRuleError
            MixedSamplesError NotDifferentiable NotScalarError NumericalError OptionError
            PrimgraphError RunError ShapeError UnknownKeyError UnknownNameError UnknownSizeError
            UnknownValueError UnsupportedDTypeError UnsupportedError
            """,
        "primgraph.extend": ".",
        "primgraph.fft": ".",
        "primgraph.initializers": ".",
        "primgraph.interop": ".",
        "primgraph.inspect.check": "check_grads",
        "primgraph.inspect.check_rules": "check_rules",
        "primgraph.inspect.cost": "Cost cost",
        "primgraph.inspect.diff": "Difference diff",
        "primgraph.inspect.explain": "Explanation explain",
        "primgraph.inspect.profile": "Profile profile",
        "primgraph.ir.builder": "Builder",
        "primgraph.ir.dims": "Dim",
        "primgraph.ir.graph": "Graph",
        "primgraph.ir.interpret": "interpret",
        "primgraph.ir.text": "parse",
        "primgraph.ir.types": "TensorType",
        "primgraph.ir.verify": "verify",
        "primgraph.linalg": ".",
        "primgraph.nn": ".",
        "primgraph.numpy.impure": "TracingWarning",
        "primgraph.operators.variable": "Variable",
        "primgraph.optimizer": ".",
        "primgraph.program.compile": "compile",
        "primgraph.program.declarations": "create_parameter data",
        "primgraph.program.finite": "check_finite",
        "primgraph.program.program": """
            Program default_main_program default_startup_program program_guard
            """,
        "primgraph.program.run": "Executor",
        "primgraph.program.save": "load save",
        "primgraph.program.scope": "Scope",
        "primgraph.program.sized": "SizedKernel",
        "primgraph.program.trace": "dim spec trace",
        "primgraph.random": ".",
        "primgraph.scipy": ".",
        "primgraph.solvers": ".",
        "primgraph.sparsity.coloring": "coloring symmetric_coloring",
        "primgraph.sparsity.pattern": "Pattern",
        "primgraph.special": ".",
        "primgraph.training.constraints": "constraints",
        "primgraph.training.fit": "fit minibatches",
        "primgraph.training.scipy_objective": "scipy_objective",
        "primgraph.transforms": ".",
        "primgraph.tree": ".",
        "primgraph.view": ".",
        "primgraph.view.formats.spy": "spy",
        "primgraph.view.growth": "growth",
        "primgraph.view.steps": "steps",
    },
    "codegen": {
        "primgraph.codegen.kernel": "Kernel compile_graph",
        "primgraph.codegen.runtime.threads": "get_num_threads set_num_threads",
    },
    "eager": {
        "primgraph.eager.compilation_log": "Compilation Log log",
        "primgraph.eager.evaluation_scope": "debug sync",
        "primgraph.eager.operator_calls": "apply",
    },
    "drop_in": {
        "primgraph.numpy.arrays": """
            array asanyarray asarray=drop_in.asfarray asarray_chkfinite ascontiguousarray
            asfortranarray ndarray
            """,
        "primgraph.numpy.fft": ".",
        "primgraph.numpy.joined": "c_ r_",
        "primgraph.numpy.linalg": ".",
        "primgraph.numpy.random": ".",
        "primgraph.numpy.vectors": "vectorize",
    },
    "transforms": {
        "primgraph.base.debug_mode": "debug",
        "primgraph.transforms.batch_graphs": "batch",
        "primgraph.transforms.hoist": "hoist",
        "primgraph.transforms.instantiate_sizes": "instantiate",
        "primgraph.transforms.jacobians.batch_sum": "batch_sum",
        "primgraph.transforms.linearize": "linearize",
        "primgraph.transforms.lower": "lower",
        "primgraph.transforms.optimize.clean_up": "clean_up",
        "primgraph.transforms.optimize.edits": "bind dead_code",
        "primgraph.transforms.optimize.fold_constants": "fold_constants",
        "primgraph.transforms.optimize.join_products": "join_products",
        "primgraph.transforms.optimize.matrix_chain": "matrix_chain",
        "primgraph.transforms.optimize.simplify": "simplify",
        "primgraph.transforms.raise_operators": "raise_",
        "primgraph.transforms.taylor_mode": "taylor",
        "primgraph.transforms.transpose": "transpose",
        "primgraph.transforms.unzip_linear": "unzip",
    },
    "tree": {"primgraph.tree": "register=primgraph.register_container"},
    # Modules that do what lower ones ask for, by task.
    "task": {
        "primgraph": "version",
        "primgraph.array_api": "array_API",
        "primgraph.api.derivatives.lazy_matrices": "Jacobians_of_tensors",
        "primgraph.codegen.code_entries": "code_entries",
        "primgraph.codegen.kernel": "kernels",
        "primgraph.codegen.planned": "planned_code",
        "primgraph.codegen.targets.libraries.kernel": "kernels_of_libraries",
        "primgraph.codegen.tiered.background": "background_compiler",
        "primgraph.derivatives.jets": "Taylor_mode",
        "primgraph.derivatives.matrices.sparse": "sparse_Jacobians",
        "primgraph.distributed.objective": "distributed_objectives",
        "primgraph.distributed.training": "distributed_training",
        "primgraph.eager.operator_calls": "operators_of_tensors",
        "primgraph.eager.steps": "evaluation",
        "primgraph.ir.frontend.origins": "origins",
        "primgraph.ir.frontend.user_expression": "expressions_of_users",
        "primgraph.operators.advice": "advice",
        "primgraph.interop.onnx.export.saving": "ONNX_files",
        "primgraph.interop.stablehlo": "StableHLO_files",
        "primgraph.operators.index.flat": "elements_in_a_row",
        "primgraph.operators.index.masked": "elements_of_masks",
        "primgraph.operators.index.masked_reductions": "reductions_of_masks",
        "primgraph.operators.linear_algebra.sparse_products": "sparse_products",
        "primgraph.operators.numpy_calls": "calls_of_NumPy",
        "primgraph.operators.numpy_ufuncs": "calls_of_ufuncs",
        "primgraph.operators.reduce.norms": "norms",
        "primgraph.random": "random_numbers",
        "primgraph.scipy": "scipy",
        "primgraph.scipy.integrate": "scipy.integrate",
        "primgraph.scipy.linalg": "scipy.linalg",
        "primgraph.scipy.signal": "scipy.signal",
        "primgraph.scipy.special": "scipy.special",
        "primgraph.scipy.stats": "scipy.stats",
        "primgraph.transforms.loops.rules": "rules_of_loops",
        "primgraph.view": "pictures",
        "primgraph.view.formats.spy": "pictures_of_patterns",
    },
    # Modules that declare ops which nothing else loads.
    "ops": {
        "primgraph.custom.primitives": "",
        "primgraph.primitives.bits": "",
        "primgraph.primitives.fourier": "",
        "primgraph.primitives.indexing": "",
        "primgraph.primitives.linear_algebra.assumptions": "",
        "primgraph.primitives.linear_algebra.cholesky": "",
        "primgraph.primitives.linear_algebra.matrix_functions": "",
        "primgraph.primitives.linear_algebra.spectra": "",
        "primgraph.primitives.linear_algebra.systems": "",
        "primgraph.primitives.linear_algebra.ties": "",
        "primgraph.primitives.running": "",
        "primgraph.primitives.sorting": "",
        "primgraph.primitives.special_functions.gamma": "",
        "primgraph.primitives.special_functions.scipy_calls": "",
        "primgraph.primitives.special_functions.special": "",
        "primgraph.primitives.windows": "",
        "primgraph.transforms.loops.rules": "",
    },
})  # fmt: skip

__all__ = [*rows("primgraph"), *rows("operators")]


def _apply_on_arrays(function: object, args: object, kwargs: object) -> object:
    """Apply a function to arrays only; the result is a tensor."""
    return import_module("primgraph.eager.operator_calls").apply(function, args, kwargs)


appliers[object] = _apply_on_arrays


def __getattr__(name: str) -> object:
    row = rows("primgraph").get(name) or rows("operators").get(name)
    if row is None:
        # Private names are not misspellings, and libraries look for many of them.
        instead = "" if name.startswith("_") else _instead(name)
        raise unknown_name("primgraph", name, __all__, instead)
    # A collection in between would look at all of the objects that modules are made of.
    with uncollected:
        found = row.load()
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(__all__)


def _instead(name: str) -> str:
    """Return where else a name exists, or its replacement; empty if unknown."""
    for place in ("nn", "optimizer", "initializers", "transforms", "extend"):
        room = import_module(f"primgraph.{place}")
        home = getattr(getattr(room, name, None), "__module__", "")
        if home.startswith(room.__name__):
            return f"there is pg.{place}.{name}. {near_matches(name, __all__)}".rstrip()
    found: str = import_module("primgraph.operators.advice").hint_function(name)
    return found
