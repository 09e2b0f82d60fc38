"""Replacements for names of NumPy, SciPy, torch, JAX and Paddle that primgraph lacks.

`EXPRESSIONS` are Python: x and y are arrays, u and v vectors, m and n square matrices, i integers,
key an integer, loss a 0-d variable, f a function of one array and x0 an array for it. `REMARKS` are
sentences for names without an expression.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

EXPRESSIONS: dict[str, str] = {
    # Elementwise.
    "absolute": "pg.abs(x)",
    "neg": "pg.negative(x)",
    "acos": "pg.arccos(x)",
    "asin": "pg.arcsin(x)",
    "atan": "pg.arctan(x)",
    "acosh": "pg.arccosh(x + 1)",
    "asinh": "pg.arcsinh(x)",
    "atanh": "pg.arctanh(x)",
    "atan2": "pg.arctan2(x, y)",
    "mul": "pg.multiply(x, y)",
    "sub": "pg.subtract(x, y)",
    "div": "pg.divide(x, y)",
    "true_divide": "pg.divide(x, y)",
    "floor_div": "pg.floor_divide(x, y)",
    "pow": "pg.power(x, y)",
    "eq": "pg.equal(x, y)",
    "ne": "pg.not_equal(x, y)",
    "lt": "pg.less(x, y)",
    "le": "pg.less_equal(x, y)",
    "gt": "pg.greater(x, y)",
    "ge": "pg.greater_equal(x, y)",
    "less_than": "pg.less(x, y)",
    "greater_than": "pg.greater(x, y)",
    "clamp": "pg.clip(x, 0.2, 0.6)",
    "clamp_min": "pg.maximum(x, 0.2)",
    "clamp_max": "pg.minimum(x, 0.2)",
    "rint": "pg.round(x)",
    "around": "pg.round(x)",
    "frac": "x - pg.sign(x) * pg.floor(pg.abs(x))",
    "radians": "pg.deg2rad(x)",
    "degrees": "pg.rad2deg(x)",
    "bitwise_not": "pg.invert(x > 0)",
    "lerp": "x + 0.5 * (y - x)",
    "expit": "pg.sigmoid(x)",
    "logit": "pg.log(x / (1 - x))",
    "xlogy": "pg.where(x == 0, 0.0, x * pg.log(y))",
    "norm.cdf": "0.5 * (1 + pg.erf(x / 2**0.5))",
    "norm.pdf": "pg.exp(-(x**2) / 2) / (2 * np.pi) ** 0.5",
    "norm.logpdf": "-(x**2) / 2 - 0.5 * np.log(2 * np.pi)",
    # Activations and losses.
    "relu6": "pg.clip(x, 0.0, 6.0)",
    "leaky_relu": "pg.where(x > 0, x, 0.01 * x)",
    "elu": "pg.where(x > 0, x, pg.expm1(x))",
    "selu": "1.0507009873554805 * pg.where(x > 0, x, 1.6732632423543772 * pg.expm1(x))",
    "hardtanh": "pg.clip(x, -1.0, 1.0)",
    "hard_tanh": "pg.clip(x, -1.0, 1.0)",
    "hardsigmoid": "pg.clip(x / 6 + 0.5, 0.0, 1.0)",
    "hard_sigmoid": "pg.clip(x / 6 + 0.5, 0.0, 1.0)",
    "hardswish": "x * pg.clip(x / 6 + 0.5, 0.0, 1.0)",
    "swish": "pg.silu(x)",
    "mish": "x * pg.tanh(pg.softplus(x))",
    "logsigmoid": "-pg.softplus(-x)",
    "log_sigmoid": "-pg.softplus(-x)",
    "softsign": "x / (1 + pg.abs(x))",
    "soft_sign": "x / (1 + pg.abs(x))",
    "tanhshrink": "x - pg.tanh(x)",
    "softmin": "pg.softmax(-x)",
    "bce_with_logits": "pg.binary_cross_entropy_with_logits(x, y)",
    "smooth_l1_loss": "pg.huber_loss(x, y)",
    "softmax_with_cross_entropy": "pg.cross_entropy(x, i)",
    "nll_loss": "-pg.mean(pg.take_along_axis(x, i[:, None], axis=1))",
    "kl_div": "pg.mean(y * (pg.log(y) - x))",
    "cosine_similarity": ("pg.sum(x * y, axis=-1) / (pg.norm(x, axis=-1) * pg.norm(y, axis=-1))"),
    "normalize": "x / pg.norm(x, axis=-1, keepdims=True)",
    # Reductions and scans.
    "amax": "pg.max(x)",
    "amin": "pg.min(x)",
    "fsum": "pg.sum(x)",
    "numel": "x.size",
    "trapz": "pg.trapezoid(v)",
    "vector_norm": "pg.norm(x)",
    # Products.
    "vdot": "pg.dot(u, v)",
    "dist": "pg.norm(u - v)",
    "mm": "pg.matmul(m, n)",
    "bmm": "pg.matmul(m, n)",
    "mv": "pg.matmul(m, v)",
    "multi_dot": "m @ n @ v",
    # Shapes.
    "view": "pg.reshape(x, (2, 6))",
    "t": "x.T",
    "permute_dims": "pg.transpose(x, (1, 0))",
    "expand": "pg.broadcast_to(v, (3, 4))",
    "expand_as": "pg.broadcast_to(v, x.shape)",
    "cat": "pg.concatenate([x, y])",
    "row_stack": "pg.vstack([x, y])",
    "chunk": "pg.split(x, 2, axis=1)",
    "unbind": "list(x)",
    # Elements.
    "index_select": "pg.take(x, i, axis=0)",
    "take_along_dim": "pg.take_along_axis(x, i[:, None], axis=1)",
    "masked_fill": "pg.where(x > 0.5, 0.0, x)",
    "putmask": "pg.where(x > 0.5, 0.0, x)",
    "copyto": "pg.broadcast_to(v, (3, 4))",
    "index_add": "pg.scatter_add(x, i, 1.0)",
    "piecewise": "pg.where(x > 0.6, 2.0, pg.where(x > 0.3, 1.0, 0.0))",
    # Creation.
    "as_tensor": "pg.array(x)",
    "to_tensor": "pg.array(x)",
    "from_numpy": "pg.array(x)",
    "asanyarray": "pg.array(x)",
    "ascontiguousarray": "pg.array(x)",
    "constant": "pg.array([1.0, 2.0])",
    "identity": "pg.eye(3)",
    "empty": "pg.zeros((3, 4))",
    "empty_like": "pg.zeros_like(x)",
    "logspace": "10.0 ** pg.linspace(0, 1, 5)",
    "placeholder": "pg.data('a', (3,))",
    "rand": "pg.uniform(key, (3,))",
    "randn": "pg.normal(key, (3,))",
    "randint": "pg.astype(pg.uniform(key, (3,), 0, 10), 'int64')",
    # Derivatives and compilation.
    "make_jaxpr": "print(pg.trace(f, x0))",
    "gradients": "pg.grad(loss, [x])",
    "detach": "pg.stop_gradient(x)",
    "manual_seed": "program.random_seed = 3",
}
"""Names of functions, and what to write in their place."""

CALLS: dict[str, str] = {
    "view": "pg.reshape({x}, {rest})",
    "expand": "pg.broadcast_to({x}, {rest})",
    "expand_as": "pg.broadcast_to({x}, {y}.shape)",
    "clamp": "pg.clip({x}, {y}, {z})",
    "clamp_min": "pg.maximum({x}, {y})",
    "clamp_max": "pg.minimum({x}, {y})",
    "lerp": "{x} + {z} * ({y} - {x})",
    "masked_fill": "pg.where({y}, {z}, {x})",
    "index_select": "pg.take({x}, {z}, axis={y})",
    "fill_": "pg.full_like({x}, {y})",
    "cat": "pg.concatenate({all})",
    "row_stack": "pg.vstack({all})",
    "multi_dot": "functools.reduce(pg.matmul, {x})",
    "constant": "pg.array({x})",
    "identity": "pg.eye({x})",
    "empty": "pg.zeros({all})",
    "chunk": "pg.split({x}, {y}, axis={z})",
    "unbind": "list({x})",
    "gradients": "pg.grad({x}, {y})",
}
"""How to write a call of a function or method of that name with its own arguments."""

METHODS: dict[str, str] = {
    "item": "pg.Executor().run(program, feed, [x])[0]",
    "numpy": "pg.Executor().run(program, feed, [x])[0]",
    "tolist": "pg.Executor().run(program, feed, [x])[0]",
    "eval": "pg.Executor().run(program, feed, [x])[0]",
    "backward": "pg.grad(loss, w)",
    "grad": "pg.grad(loss, x)",
    "gradient": "pg.grad(loss, x)",
    "requires_grad": "x.stop_gradient",
    "requires_grad_": "x.stop_gradient = False",
    "clone": "x",
    "contiguous": "x",
    "data": "x.detach()",
    "dim": "x.ndim",
    "numel": "x.size",
    "nbytes": "x.size * x.dtype.itemsize",
    "itemsize": "x.dtype.itemsize",
    "to": "x.astype('float32')",
    "float": "x.astype('float32')",
    "double": "x.astype('float64')",
    "int": "x.astype('int32')",
    "long": "x.astype('int64')",
    "bool": "x.astype('bool')",
    "half": "x.astype('float16')",
    "at": "pg.set_slice(x, 0, 1.0)",
    "fill_": "pg.full_like(x, 0.0)",
    "zero_": "pg.zeros_like(x)",
}
"""Names of methods of arrays, and what to write in their place; functions are those above."""

_SORTED = "compute it with NumPy from the arrays that a run returns"
_SPECIAL = "pg.special has it, by the name that it has in scipy.special"
_LINEAR = "pg.linalg has it, by the name that it has in numpy.linalg"
_COUNTED = "the shape of the result would depend on values: use pg.where, or pg.extract with size="
_LOOPED = "loops and branches are pg.scan, pg.fori_loop, pg.while_loop, pg.cond and pg.switch"
_PLACED = "arrays are in the memory of the CPU, and primgraph has no GPU target: leave it out"
_DRAWN = "pg.random has such functions: they take an integer key, another one for each draw"
KEYS = (
    "keys are integers: pg.random.normal(7, shape), and another integer for each draw; "
    "pg.random.split(key, 2) makes two keys of one"
)
_DTYPES = "dtypes are NumPy's: 'float32' or np.float32"
_STORED = "variables are immutable: compute a new one, such as x = x + y, or use pg.set_slice"
_DECLARED = "pg.data declares an input in a pg.Program; pg.jit compiles a function of arrays"
_NETS = "layers of convolutions and pools have torch's names: pg.nn.Conv2d, pg.nn.MaxPool2d"

_GROUPS = [
    ("kthvalue mode", _SORTED),
    ("msort sorted topk", "pg.sort, pg.argsort and pg.top_k sort"),
    ("inv pinv solve lstsq det slogdet eig eigvals eigh eigvalsh", _LINEAR),
    ("svd qr cholesky matrix_rank", _LINEAR),
    ("masked_select", _COUNTED),
    ("lax for_loop", _LOOPED),
    ("cuda gpu cpu xpu device device_put devices set_device", _PLACED),
    ("permutation shuffle choice multinomial", _DRAWN),
    ("PRNGKey", KEYS),
    ("float16 float32 float64 int8 int16 int32 int64 uint8 bool_ double half dtype", _DTYPES),
    ("put place fill_diagonal put_along_axis scatter_", _STORED),
    ("shape ndim", "write x.shape or x.ndim"),
    ("copy", "variables are immutable: use x itself"),
    ("Conv1D Conv2D Conv3D MaxPool2D AvgPool2D Conv2DTranspose", _NETS),
    ("beta betainc betaln digamma erfinv gamma gammainc gammaln ndtr", _SPECIAL),
    ("lgamma", "it is pg.special.gammaln"),
    ("backward", "tensors have it: loss.backward(); of variables there is pg.grad(loss, w)"),
    ("Module", "the class of layers is pg.nn.Layer"),
    ("pi e inf nan newaxis", "constants are NumPy's: np.pi, np.inf"),
    ("remat", "pg.checkpoint recomputes values in reverse mode instead of storing them"),
    ("tree_map", "it is pg.tree.map"),
    (
        "tree_flatten tree_leaves tree_structure tree_unflatten tree_util",
        "pg.tree has map, flatten, leaves, structure and unflatten, for containers of arrays",
    ),
    ("function shared scalar vector matrix SX MX", _DECLARED),
    ("Session session", "pg.Executor().run(program, feed, fetch_list) runs a program"),
    ("GradientTape tape", "pg.grad(f) is the gradient of a function, loss.backward() of a tensor"),
    ("minimize optimize", "scipy.optimize.minimize takes jac=pg.grad(f); pg.optimizer has Adam"),
    ("odeint ode integrate", "primgraph.scipy.integrate has solve_ivp and quad"),
    ("pmap shard_map", "pg.vmap maps a function over an axis, pg.distributed over dask workers"),
    ("save_model onnx", "pg.save writes programs, kernel.save files of NumPy or C code"),
    ("DataLoader Dataset", "pg.minibatches yields shuffled batches of arrays"),
    ("debug print", "pg.check_finite finds NaN and infinities, and so does run(..., debug='nan')"),
    ("init", "pg.initializers has Constant, Normal, Uniform and others"),
    (
        "numpy np functional",
        "its functions are in primgraph itself: pg.tanh; primgraph.numpy has NumPy's names",
    ),
]

# Additional remarks on methods.
_MORE: dict[str, str] = {
    "backward": "pg.grad returns the gradient, and w.grad is not set; "
    "pg.value_and_grad(f) returns value and gradient of a function",
}

_OPTIMIZERS = "pg.optimizer has SGD, Momentum, Adam, AdamW and RMSProp"

REMARKS: dict[str, str] = {
    **{name: sentence for names, sentence in _GROUPS for name in names.split()},
    "func": "pg.jvp, pg.vjp, pg.hvp, pg.jacobian and pg.hessian are in primgraph itself",
    "optim": _OPTIMIZERS,
    "optimizers": _OPTIMIZERS,
    "layers": "pg.nn has the layers",
    "Module": "it is pg.nn.Layer",
    "Parameter": "pg.create_parameter makes one",
    "static": "primgraph.compat.paddle has Paddle's names: pg.Program, pg.data, pg.Executor here",
    "register_hook": "pg.grad takes the derivative by any value, intermediate ones too",
    "retain_grad": "pg.grad takes the derivative by any value, intermediate ones too",
    "zero_grad": "gradients do not add up: pg.grad gives new ones",
    "step": "minimize of pg.optimizer.Adam makes every run of the program a step",
}
"""Names, and sentences for what no expression stands for."""

_RUN = "pg.Executor().run(program, feed, [y]) runs a program"
_FILE = "f.kernel(x0).save('f.py') writes a file"
_STORE = "pg.save(program, path) stores a program, kernel.save(path) writes NumPy or C code"
MEMBERS: dict[str, str] = {
    **dict.fromkeys(["Program.run", "Program.execute", "Program.eval", "Program.fetch"], _RUN),
    **dict.fromkeys(["Program.to_onnx", "Graph.to_onnx", "Kernel.to_onnx"], _STORE),
    "Program.compile": "pg.Executor compiles a program at its first run; "
    "pg.compile(program.graph([y])) is a kernel",
    "Program.grad": "write pg.grad(y, x)",
    "Program.backward": "write pg.grad(y, x)",
    "Program.data": "write x = pg.data(name, shape) within `with program:`",
    "Program.summary": "print(program), program.show() and pg.cost(program) describe it",
    "Program.parameters": "program.state_dict() has the values of parameters",
    "Graph.run": "pg.compile(graph)(x0) runs it",
    "Graph.compile": "write pg.compile(graph)",
    "Kernel.run": "write kernel(x0)",
    "Jit.save": _FILE,
    "Jit.source": "f.kernel(x0).source is the code for arguments like x0",
    "Jit.lower": "pg.trace(f, x0) is the graph",
    "Jit.compile": "it compiles at the first call with new shapes or dtypes",
    "Jit.to_onnx": _FILE,
    **{
        f"SparseMatrix.{name}": "S.to_scipy() is the SciPy matrix, which has all formats"
        for name in [
            "tocsr",
            "tocsc",
            "tocoo",
            "todok",
            "tolil",
            "tobsr",
            "todia",
            "todense",
            "getrow",
            "getcol",
        ]
    },
}
"""Attributes that objects here lack, and sentences for what to use instead."""

POSITIONS: dict[str, str] = {
    "assign": "program.update(w, new) changes a parameter at the end of each run",
}
"""Functions that methods of other libraries have the name of, and what to write instead."""

_FUNCTIONS = "pg.where(pred, x, y) chooses between arrays; cond takes functions: lambda: x"
OPERANDS: dict[str, str] = {
    "cond.true_fun": _FUNCTIONS,
    "cond.false_fun": _FUNCTIONS,
    "save.program": "np.savez(path, x) stores arrays, kernel.save('f.py') writes compiled code",
    "__init__.parameters": "write parameters=layer.parameters()",
    "__init__.scope": "pg.Executor() runs on the CPU and takes no place or device",
}
"""Parameters, and what to write if an argument of another kind is given for them."""

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(("device", "place", "backend"), "primgraph runs on the CPU: leave it out"),
    "momentum": "pg.optimizer.Momentum(learning_rate, momentum) is that rule",
    "nesterov": _OPTIMIZERS,
    "amsgrad": _OPTIMIZERS,
    "requires_grad": "pg.tensor(x, requires_grad=True) makes a leaf",
    "unroll": "loops are compiled as loops: leave it out",
    "nopython": "all of the function is compiled: leave it out",
    "donate_argnums": "pg.compile(graph, donated=...) overwrites arguments",
    "args": "let the function use them from around it: lambda x: f(x, a)",
    "descending": "pg.flip(pg.sort(x)) is in descending order",
    "inplace": "arrays are not changed in place: leave it out",
    "name": "only inputs and parameters have names: leave it out",
}
"""Arguments of other libraries that there are none for here, and what to do instead."""

ARGUMENTS: dict[str, str] = {
    "dim": "axis",
    "dims": "axes",
    "keepdim": "keepdims",
    "input": "x",
    "a": "x",
    "other": "x2",
    "perm": "axes",
    "tensors": "arrays",
    "unbiased": "ddof",
    "correction": "ddof",
    "decimal": "decimals",
    "newshape": "shape",
    "lr": "learning_rate",
    "betas": "beta1",
    "eps": "epsilon",
    "epsilon": "eps",
    "fetch": "fetch_list",
    "fetches": "fetch_list",
    "feed_dict": "feed",
    "label": "labels",
    "target": "labels",
    "size": "shape",
    "p": "rate",
    "params": "parameters",
    "init": "initializer",
    "maxiter": "max_trips",
    "max_iter": "max_trips",
    "xtol": "tol",
    "disp": "check",
    "wrt": "argnums",
    "axis": "in_axes",
    "in_dims": "in_axes",
    "out_dims": "out_axes",
    "argnum": "argnums",
}
"""Names of arguments elsewhere, and the names that they have here."""


_RENAMED = re.compile(r"pg\.(\w+)\(x(?:, y)?\)")
_PLAIN = re.compile(r"pg\.(\w+)\((?:x|x, y|u, v|m, n|m, v)\)")


def call_instead(name: str, arguments: Sequence[str], named: Sequence[str] = ()) -> str:
    """Return the call that replaces a call of `name` with these arguments, given as source text.

    It is empty if no template is known, or if the template needs more arguments than are given.
    """
    template = CALLS.get(name, "")
    found = _PLAIN.fullmatch(EXPRESSIONS.get(name, ""))
    if found is not None:
        template = f"pg.{found[1]}({{all}})"
    fields = dict(zip("xyz", arguments, strict=False))
    rest = list(arguments[1:])
    if rest:
        fields["rest"] = rest[0] if len(rest) == 1 else f"({', '.join(rest)})"
    if arguments:
        fields["all"] = ", ".join([*arguments, *named])
    wanted = set(re.findall(r"\{(\w+)\}", template))
    if not template or not wanted <= fields.keys() or (named and "all" not in wanted):
        return ""
    return template.format(**fields)


def replacement_hint(name: str) -> str:
    """Return the hint what to write for a function of another library; empty if unknown."""
    expression = EXPRESSIONS.get(name)
    return f"write {expression}" if expression is not None else REMARKS.get(name, "")


def public_name(name: str) -> str:
    """Return the public name of a function of another library; empty if there is none."""
    found = _RENAMED.fullmatch(EXPRESSIONS.get(name, ""))
    return found[1] if found else ""


def method_instead(name: str, array: str, is_traced: bool) -> str:
    """Return advice for a method of that name of an array, whose expression is `array`.

    `is_traced` says that the array belongs to a function that is being traced.
    """
    expression = METHODS.get(name)
    if is_traced and expression == METHODS["item"]:
        return f"return {array} from the traced function, and convert what its call returns"
    if expression == "x":
        return f"variables are immutable: use {array} itself"
    if expression is not None:
        more = f": {_MORE[name]}" if name in _MORE else ""
        return f"write {with_name(expression, array)}{more}"
    if name.endswith("_") and not name.startswith("_"):
        return _STORED
    other = EXPRESSIONS.get(name)
    return f"write {with_name(other, array)}" if other is not None else REMARKS.get(name, "")


def with_name(expression: str, array: str) -> str:
    """Return an expression of the tables with `array` in place of its x."""
    try:
        put = _Put(ast.parse(array, mode="eval").body)
        return ast.unparse(put.visit(ast.parse(expression)))
    except SyntaxError:
        return expression


class _Put(ast.NodeTransformer):
    """Replace x by another expression."""

    def __init__(self, expression: ast.expr) -> None:
        self.expression = expression

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expression if node.id == "x" else node
