"""What stands here for the names of NumPy, SciPy, torch, JAX and Paddle that primgraph lacks.

`EXPRESSIONS` are Python: x and y are arrays, u and v vectors, m and n square matrices, i integers,
key an integer, loss a 0-d variable, f a function of one array and x0 an array for it.
`REMARKS` are sentences for what no expression stands for.
"""

from __future__ import annotations

import re

EXPRESSIONS: dict[str, str] = {
    # Elementwise.
    "absolute": "pg.abs(x)",
    "fabs": "pg.abs(x)",
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
    "float_power": "pg.power(x, y)",
    "fmod": "pg.sign(x) * pg.remainder(pg.abs(x), pg.abs(y))",
    "divmod": "divmod(x, y)",
    "eq": "pg.equal(x, y)",
    "ne": "pg.not_equal(x, y)",
    "lt": "pg.less(x, y)",
    "le": "pg.less_equal(x, y)",
    "gt": "pg.greater(x, y)",
    "ge": "pg.greater_equal(x, y)",
    "less_than": "pg.less(x, y)",
    "greater_than": "pg.greater(x, y)",
    "fmax": "pg.maximum(x, y)",
    "fmin": "pg.minimum(x, y)",
    "clamp": "pg.clip(x, 0.2, 0.6)",
    "clamp_min": "pg.maximum(x, 0.2)",
    "clamp_max": "pg.minimum(x, 0.2)",
    "rint": "pg.round(x)",
    "around": "pg.round(x)",
    "fix": "pg.sign(x) * pg.floor(pg.abs(x))",
    "trunc": "pg.sign(x) * pg.floor(pg.abs(x))",
    "frac": "x - pg.sign(x) * pg.floor(pg.abs(x))",
    "modf": "x - pg.sign(x) * pg.floor(pg.abs(x)), pg.sign(x) * pg.floor(pg.abs(x))",
    "cbrt": "pg.sign(x) * pg.abs(x) ** (1 / 3)",
    "hypot": "pg.norm(pg.stack([x, y]), axis=0)",
    "sinc": "pg.where(x == 0, 1.0, pg.sin(np.pi * x) / (np.pi * x))",
    "heaviside": "pg.where(x == 0, y, pg.where(x < 0, 0.0, 1.0))",
    "signbit": "x < 0",
    "copysign": "pg.abs(x) * pg.where(y < 0, -1.0, 1.0)",
    "deg2rad": "x * (np.pi / 180)",
    "radians": "x * (np.pi / 180)",
    "rad2deg": "x * (180 / np.pi)",
    "degrees": "x * (180 / np.pi)",
    "logaddexp2": "pg.logaddexp(x * np.log(2), y * np.log(2)) / np.log(2)",
    "nan_to_num": "pg.where(pg.isnan(x), 0.0, x)",
    "isclose": "pg.abs(x - y) <= 1e-8 + 1e-5 * pg.abs(y)",
    "allclose": "pg.all(pg.abs(x - y) <= 1e-8 + 1e-5 * pg.abs(y))",
    "array_equal": "pg.all(x == y)",
    "bitwise_not": "pg.invert(x > 0)",
    "lerp": "x + 0.5 * (y - x)",
    "conj": "x",
    "conjugate": "x",
    "real": "x",
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
    "embedding": "pg.take(x, i, axis=0)",
    # Reductions and scans.
    "amax": "pg.max(x)",
    "amin": "pg.min(x)",
    "ptp": "pg.max(x) - pg.min(x)",
    "average": "pg.mean(x)",
    "nansum": "pg.sum(pg.where(pg.isnan(x), 0.0, x))",
    "nanmean": "pg.sum(pg.where(pg.isnan(x), 0.0, x)) / pg.sum(~pg.isnan(x))",
    "fsum": "pg.sum(x)",
    "nanmax": "pg.max(pg.where(pg.isnan(x), -np.inf, x))",
    "nanmin": "pg.min(pg.where(pg.isnan(x), np.inf, x))",
    "numel": "x.size",
    "cumprod": "pg.exp(pg.cumsum(pg.log(x)))",
    "diff": "v[1:] - v[:-1]",
    "trapezoid": "pg.sum(v[1:] + v[:-1]) / 2",
    "trapz": "pg.sum(v[1:] + v[:-1]) / 2",
    "vector_norm": "pg.norm(x)",
    "bincount": "pg.sum(pg.one_hot(i, 4), axis=0)",
    # Products.
    "vdot": "pg.dot(u, v)",
    "dist": "pg.norm(u - v)",
    "vecdot": "pg.sum(x * y, axis=-1)",
    "mm": "pg.matmul(m, n)",
    "bmm": "pg.matmul(m, n)",
    "mv": "pg.matmul(m, v)",
    "matvec": "pg.matmul(m, v)",
    "multi_dot": "m @ n @ v",
    "kron": "pg.reshape(pg.einsum('ij,kl->ikjl', m, n), (m.shape[0] * n.shape[0], -1))",
    "matrix_transpose": "pg.swapaxes(x, -1, -2)",
    # Shapes.
    "view": "pg.reshape(x, (2, 6))",
    "t": "x.T",
    "permute_dims": "pg.transpose(x, (1, 0))",
    "rollaxis": "pg.moveaxis(x, 1, 0)",
    "expand": "pg.broadcast_to(v, (3, 4))",
    "expand_as": "pg.broadcast_to(v, x.shape)",
    "atleast_1d": "pg.reshape(loss, (1,))",
    "atleast_2d": "v[None]",
    "flipud": "pg.flip(x, 0)",
    "fliplr": "pg.flip(x, 1)",
    "rot90": "pg.flip(pg.transpose(x), 0)",
    "cat": "pg.concatenate([x, y])",
    "append": "pg.concatenate([u, v])",
    "hstack": "pg.concatenate([x, y], axis=1)",
    "vstack": "pg.concatenate([x, y], axis=0)",
    "row_stack": "pg.concatenate([x, y], axis=0)",
    "dstack": "pg.stack([x, y], axis=2)",
    "column_stack": "pg.stack([u, v], axis=1)",
    "chunk": "pg.split(x, 2, axis=1)",
    "hsplit": "pg.split(x, 2, axis=1)",
    "vsplit": "pg.split(x, 3, axis=0)",
    "array_split": "pg.split(x, 3)",
    "unbind": "list(x)",
    "unstack": "list(x)",
    "trace": "pg.sum(pg.diagonal(m))",
    "tri": "pg.tril(pg.ones((3, 3)))",
    "diag": "pg.diagonal(m)",
    "meshgrid": "pg.broadcast_to(u, (4, 4)), pg.broadcast_to(v[:, None], (4, 4))",
    # Elements.
    "index_select": "pg.take(x, i, axis=0)",
    "take_along_dim": "pg.take_along_axis(x, i[:, None], axis=1)",
    "masked_fill": "pg.where(x > 0.5, 0.0, x)",
    "putmask": "pg.where(x > 0.5, 0.0, x)",
    "copyto": "pg.broadcast_to(v, (3, 4))",
    "index_add": "pg.scatter_add(x, i, 1.0)",
    "select": "pg.where(x > 0.6, 2.0, pg.where(x > 0.3, 1.0, 0.0))",
    "piecewise": "pg.where(x > 0.6, 2.0, pg.where(x > 0.3, 1.0, 0.0))",
    # Made from nothing.
    "tensor": "pg.array([1.0, 2.0])",
    "Tensor": "pg.array([1.0, 2.0])",
    "as_tensor": "pg.array(x)",
    "to_tensor": "pg.array(x)",
    "from_numpy": "pg.array(x)",
    "asarray": "pg.array(x)",
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
    "jit": "pg.compile(pg.trace(f, x0))",
    "value_and_grad": "pg.compile(pg.trace(lambda x: [f(x), pg.grad(f(x), x)], x0))",
    "jacfwd": "pg.compile(pg.trace(lambda x: pg.jacobian(f(x), x), x0))",
    "jacrev": "pg.compile(pg.trace(lambda x: pg.jacobian(f(x), x), x0))",
    "vmap": "pg.compile(pg.transforms.batch(pg.trace(f, x0), 5))",
    "make_jaxpr": "print(pg.trace(f, x0))",
    "gradients": "pg.grad(loss, [x])",
    "detach": "pg.stop_gradient(x)",
    "custom_jvp": "pg.extend.primitive",
    "custom_vjp": "pg.extend.primitive",
    "manual_seed": "program.random_seed = 3",
    "seed": "program.random_seed = 3",
}
"""Names of functions, and what to write in their place."""

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
    "copy": "x",
    "contiguous": "x",
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
    "mT": "pg.swapaxes(x, -1, -2)",
    "fill_": "pg.full_like(x, 0.0)",
    "zero_": "pg.zeros_like(x)",
}
"""Names of methods of arrays, and what to write in their place; functions are those above."""

_SORTED = "nothing sorts here: compute it with NumPy from what a run returns"
_SOLVED = "there is no such decomposition here: compute it with NumPy from what a run returns"
_COUNTED = "how many elements it has depends on numbers, and shapes are fixed: use pg.where"
_LOOPED = "write a loop or an `if` of Python, which is unrolled, or choose by pg.where"
_PLACED = "programs run on the processor, and there is nothing to move"
_DRAWN = "pg.uniform, pg.normal and pg.bernoulli take an integer key, another one for each draw"
_DTYPES = "dtypes are NumPy's: 'float32' or np.float32"
_STORED = "values never change: compute a new one, such as x = x + y, or use pg.set_slice"
_NETS = "convolutions and pooling are not among the operators"

_GROUPS = [
    ("sort argsort msort lexsort partition argpartition median nanmedian quantile", _SORTED),
    ("percentile topk kthvalue mode unique searchsorted histogram digitize interp", _SORTED),
    ("inv pinv solve lstsq det slogdet eig eigh eigvals eigvalsh svd qr cholesky", _SOLVED),
    ("matrix_rank cond expm", _SOLVED),
    ("nonzero argwhere flatnonzero masked_select compress extract", _COUNTED),
    ("scan while_loop fori_loop switch lax", _LOOPED),
    ("cuda gpu device device_put set_device", _PLACED),
    ("random permutation shuffle choice multinomial PRNGKey", _DRAWN),
    ("float16 float32 float64 int8 int16 int32 int64 uint8 bool_ double half dtype", _DTYPES),
    ("put place fill_diagonal put_along_axis scatter_", _STORED),
    ("shape ndim", "x.shape and x.ndim are known as soon as x is"),
    ("copy", "values never change: x itself can be kept"),
    ("conv1d conv2d conv3d convolve max_pool2d avg_pool2d", _NETS),
    ("Conv1d Conv2d Conv2D MaxPool2d MaxPool2D AvgPool2d", _NETS),
    ("gamma lgamma gammaln digamma erfinv", "pg.extend.elementwise adds such a function"),
    ("pi e inf nan newaxis", "constants are NumPy's: np.pi, np.inf"),
    ("numpy np functional", "its functions are in primgraph itself: pg.tanh"),
]

REMARKS: dict[str, str] = {
    **{name: sentence for names, sentence in _GROUPS for name in names.split()},
    "linalg": "pg.norm, pg.matmul, pg.tensordot and pg.einsum are in primgraph itself",
    "special": "pg.erf, pg.sigmoid, pg.logsumexp and pg.softmax are in primgraph itself",
    "autograd": "pg.grad, pg.jvp, pg.vjp, pg.Jacobian and pg.Hessian are in primgraph itself",
    "func": "pg.jvp, pg.vjp, pg.hvp, pg.jacobian and pg.hessian are in primgraph itself",
    "optim": "pg.optimizer has SGD, Momentum, Adam, AdamW and RMSProp",
    "optimizers": "pg.optimizer has SGD, Momentum, Adam, AdamW and RMSProp",
    "layers": "pg.nn has the layers",
    "Module": "it is pg.nn.Layer",
    "Parameter": "pg.create_parameter makes one",
    "static": "primgraph.compat.paddle has Paddle's names: pg.Program, pg.data, pg.Executor here",
    "fft": "there are no Fourier transforms here, nor complex numbers",
    "no_grad": "nothing is recorded for derivatives: pg.stop_gradient(x) ends their path",
    "checkpoint": "nothing is kept for derivatives but what pg.compile plans",
    "enable_grad": "derivatives need not be enabled: pg.grad takes them",
    "register_hook": "pg.grad takes the derivative by any value, intermediate ones too",
    "retain_grad": "pg.grad takes the derivative by any value, intermediate ones too",
    "zero_grad": "gradients do not add up: pg.grad gives new ones",
    "step": "minimize of pg.optimizer.Adam makes every run of the program a step",
}
"""Names, and sentences for what no expression stands for."""

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
}
"""Names of arguments elsewhere, and the names that they have here."""


_RENAMED = re.compile(r"pg\.(\w+)\(x(?:, y)?\)")


def written_instead(name: str) -> str:
    """What to write in place of a function of that name elsewhere; nothing if none is known."""
    expression = EXPRESSIONS.get(name)
    return f"write {expression}" if expression is not None else REMARKS.get(name, "")


def renamed(name: str) -> str:
    """The public name of what is a function of that name elsewhere; nothing if it is no name."""
    found = _RENAMED.fullmatch(EXPRESSIONS.get(name, ""))
    return found[1] if found else ""


def method_instead(name: str) -> str:
    """What to write in place of a method of that name of an array, for a variable x."""
    expression = METHODS.get(name)
    if expression == "x":
        return "values never change: x itself can be kept"
    if expression is not None:
        return f"write {expression}"
    if name.endswith("_") and not name.startswith("_"):
        return _STORED
    return written_instead(name)
