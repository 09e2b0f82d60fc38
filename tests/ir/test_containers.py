"""Containers of arguments: taken in an order that means something, or refused, never in silence."""

import inspect
import math
from typing import Any

import numpy as np
import pytest

import primgraph as pg
from primgraph import extend, initializers, nn, optimizer, transforms
from primgraph.ir.frontend.signature import _kinds_of

ONES = np.ones(3)


class Model:
    """A program with all that calls below need."""

    def __init__(self) -> None:
        with pg.Program() as self.program:
            self.x, self.y = pg.data("x", (3,)), pg.data("y", (3,))
            self.m, self.n = pg.data("m", (2, 3)), pg.data("n", (2, 3))
            self.w, self.v = (pg.create_parameter((3,), name=n) for n in "wv")
            self.a, self.b = self.x * self.w, self.y * self.v
            self.loss, self.other = pg.sum(self.a * self.b), pg.sum(self.a)
            self.samples = self.m * 1.0
        self.graph = pg.trace(lambda x, y: (x * y, x + y), pg.spec(3), pg.spec(3))
        self.t, self.u = (pg.tensor(ONES, requires_grad=True) for _ in "tu")
        self.linear = pg.transforms.linearize(self.graph)


def square(x: Any, w: Any) -> Any:
    return pg.sum(x * w)


@pg.custom_gradient
def twofold(x: Any) -> Any:
    return x * 2.0, lambda g: g * 2.0


def within(model: Model, function: Any) -> Any:
    with model.program:
        return function()


def axis(name: str) -> dict[str, Any]:
    """The calls of an operator and, where there is one, of a method with several axes."""
    calls = {f"{name} axis": lambda t, c: getattr(pg, name)(t.m, axis=c([1, 0]))}
    if hasattr(pg.Variable, name):
        calls[f"Variable.{name} axis"] = lambda t, c: getattr(t.m, name)(axis=c([1, 0]))
    return calls


REDUCTIONS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")
# Calls by what is given in a container, which `c` makes of a list of its items.
CALLS: dict[str, Any] = {
    "grad outputs": lambda t, c: pg.grad(c([t.loss, t.other]), t.x),
    "grad inputs": lambda t, c: pg.grad(t.loss, c([t.x, t.y])),
    "grad grad_outputs": lambda t, c: pg.grad([t.loss, t.other], [t.x, t.y], c([1.0, 2.0])),
    "grad no_grad_vars": lambda t, c: pg.grad(t.loss, t.x, no_grad_vars=c([t.y, t.v])),
    "GradManager.attach tensors": lambda t, c: pg.GradManager().attach(c([t.t, t.u])) and 0,
    "GradManager.attach callbacks": lambda t, c: (
        pg.GradManager().attach(t.t, c([lambda p, g: g, lambda p, g: g])) and 0
    ),
    "Tensor.backward inputs": lambda t, c: (t.t * t.u).sum().backward(inputs=c([t.t, t.u])),
    "Pattern.__init__ shape": lambda t, c: pg.Pattern(c([2, 3]), [0, 0, 0], []) and 0,
    "check_rules args": lambda t, c: pg.check_rules(twofold, c([np.float64(2.0)])),
    "nanpercentile axis": lambda t, c: pg.nanpercentile(t.m, 30, axis=c([0, 1])),
    "nanquantile axis": lambda t, c: pg.nanquantile(t.m, 0.3, axis=c([0, 1])),
    "ravel_multi_index multi_index": lambda t, c: (
        pg.ravel_multi_index(c([[0], [1]]), (2, 3)).shape and 0
    ),
    "trim_zeros axis": lambda t, c: pg.trim_zeros(np.eye(2), axis=c([0, 1])).shape and 0,
    "custom_jvp nondiff_argnums": lambda t, c: pg.custom_jvp(nondiff_argnums=c([0]))(square) and 0,
    "custom_vjp nondiff_argnums": lambda t, c: pg.custom_vjp(nondiff_argnums=c([0]))(square) and 0,
    "value_and_grad argnums": lambda t, c: pg.value_and_grad(square, c([1, 0]))(ONES, ONES),
    "jacfwd argnums": lambda t, c: pg.jacfwd(square, c([1, 0]))(ONES, ONES),
    "jacrev argnums": lambda t, c: pg.jacrev(square, c([1, 0]))(ONES, ONES),
    "jacobian argnums": lambda t, c: pg.jacobian(square, argnums=c([1, 0]))(ONES, ONES),
    "hessian argnums": lambda t, c: pg.hessian(square, argnums=c([1, 0]))(ONES, ONES),
    "sparse_jacobian argnums": lambda t, c: pg.sparse_jacobian(square, argnums=c([1, 0]))(
        ONES, ONES
    ).to_dense(),
    "sparse_hessian argnums": lambda t, c: pg.sparse_hessian(square, argnums=c([1, 0]))(
        ONES, ONES
    ).to_dense(),
    "jit static_argnums": lambda t, c: pg.jit(square, c([1, 0]))(2.0, 3.0),
    "jit static_argnames": lambda t, c: pg.jit(square, static_argnames=c(["w", "x"]))(2.0, 3.0),
    "forward_grad outputs": lambda t, c: pg.forward_grad(c([t.loss, t.other]), t.x),
    "forward_grad inputs": lambda t, c: pg.forward_grad(t.a, c([t.x, t.w])),
    "jacobian y": lambda t, c: pg.jacobian(c([t.a, t.other]), t.x),
    "jacobian x": lambda t, c: pg.jacobian(t.a, c([t.x, t.w])),
    "batched_jacobian y": lambda t, c: pg.batched_jacobian(c([t.samples]), t.m),
    "batched_jacobian x": lambda t, c: pg.batched_jacobian(t.samples, c([t.m])),
    "hessian x": lambda t, c: pg.hessian(t.loss, c([t.x, t.w])),
    "Jacobian inputs": lambda t, c: pg.Jacobian(square, c([t.x, t.w]))[:],
    "Hessian inputs": lambda t, c: pg.Hessian(square, c([t.x, t.w]))[:],
    "vjp inputs": lambda t, c: pg.vjp(square, c([t.x, t.w])),
    "jvp inputs": lambda t, c: pg.jvp(square, c([t.x, t.w])),
    "hvp inputs": lambda t, c: pg.hvp(square, c([t.x, t.w]), [ONES, ONES]),
    "vhp inputs": lambda t, c: pg.vhp(square, c([t.x, t.w]), [ONES, ONES]),
    "vjp of results": lambda t, c: pg.vjp(lambda x, w: c([x, w]), [t.x, t.w]),
    "Optimizer.minimize parameters": lambda t, c: optimizer.SGD(0.1).minimize(
        t.loss, c([t.w, t.v])
    ),
    "SGD.__init__ parameters": lambda t, c: optimizer.SGD(0.1, parameters=c([t.t, t.u])) and 0,
    "Optimizer.minimize no_grad_set": lambda t, c: optimizer.SGD(0.1).minimize(
        t.loss, no_grad_set=c([t.w])
    ),
    "scipy_objective parameters": lambda t, c: pg.scipy_objective(
        t.program, t.loss, c([t.w, t.v]), feed={"x": ONES, "y": ONES}
    ),
    "stack arrays": lambda t, c: pg.stack(c([t.x, t.y])),
    "concat arrays": lambda t, c: pg.concat(c([t.x, t.y])),
    "concatenate arrays": lambda t, c: pg.concatenate(c([t.x, t.y])),
    "add_n": lambda t, c: pg.add_n(c([t.x, t.y])),
    "Program.graph outputs": lambda t, c: t.program.graph(c([t.a, t.b])),
    "Graph.with_outputs outputs": lambda t, c: t.graph.with_outputs(c(t.graph.outputs[::-1])),
    "Graph.__init__ inputs": lambda t, c: pg.Graph(
        c(t.graph.inputs), t.graph.body, t.graph.outputs
    ),
    "Graph.__init__ body": lambda t, c: pg.Graph(t.graph.inputs, c(t.graph.body), t.graph.outputs),
    "Graph.__init__ outputs": lambda t, c: pg.Graph(
        t.graph.inputs, t.graph.body, c(t.graph.outputs)
    ),
    "Executor.run fetch_list": lambda t, c: pg.Executor().run(
        t.program, {"x": ONES, "y": ONES}, c([t.a, t.b])
    ),
    "Executor.kernel fetch_list": lambda t, c: pg.Executor().kernel(t.program, c([t.a, t.b])),
    "Executor.general_kernel fetch_list": lambda t, c: pg.Executor().general_kernel(
        t.program, c([t.a, t.b])
    ),
    "Executor.repeated_kernel fetch_list": lambda t, c: pg.Executor().repeated_kernel(
        t.program, c([t.a, t.b])
    ),
    "Executor.arguments fetch_list": lambda t, c: pg.Executor().arguments(
        t.program, {"x": ONES, "y": ONES}, c([t.a, t.b])
    ),
    "Executor.sizes fetch_list": lambda t, c: pg.Executor().sizes(
        t.program, {"x": ONES, "y": ONES}, c([t.a, t.b])
    ),
    "cost fetch_list": lambda t, c: pg.cost(t.program, c([t.a, t.b])),
    "check_grads inputs": lambda t, c: pg.check_grads(pg.arctan2, c([1.0, 2.0])),
    "check_grads modes": lambda t, c: pg.check_grads(pg.sin, [ONES], modes=c(["forward"])),
    "jit through": lambda t, c: pg.jit(square, through=c([math]))(2.0, 3.0),
    "trace through": lambda t, c: pg.trace(pg.sum, pg.spec(2), through=c([math])),
    "trace": lambda t, c: pg.trace(pg.sum, c([1.0, 2.0])),
    "permute axes": lambda t, c: pg.permute(t.m, c([1, 0])),
    "transpose axes": lambda t, c: pg.transpose(t.m, c([1, 0])),
    "Variable.transpose": lambda t, c: t.m.transpose(c([1, 0])),
    "unsqueeze axis": lambda t, c: pg.unsqueeze(t.m, c([1, 0])),
    "reshape": lambda t, c: pg.reshape(t.m, c([3, 2])),
    "Variable.reshape": lambda t, c: t.m.reshape(c([3, 2])),
    "data": lambda t, c: within(t, lambda: pg.data("z", c([2, 3]))),
    "create_parameter": lambda t, c: within(t, lambda: pg.create_parameter(c([2, 3]))),
    "spec": lambda t, c: pg.spec(c([2, 3])),
    "zeros": lambda t, c: pg.zeros(c([2, 3])),
    "uniform": lambda t, c: pg.uniform(1, c([2, 3])),
    "expand_dims axis": lambda t, c: pg.expand_dims(t.m, c([1, 0])),
    "moveaxis source": lambda t, c: pg.moveaxis(t.m, c([1, 0]), [0, 1]),
    "moveaxis destination": lambda t, c: pg.moveaxis(t.m, [0, 1], c([1, 0])),
    "layer_norm axis": lambda t, c: pg.layer_norm(t.m, axis=c([1, 0])),
    "rms_norm axis": lambda t, c: pg.rms_norm(t.m, axis=c([1, 0])),
    "nn.RMSNorm.__init__ shape": lambda t, c: nn.RMSNorm(c([2, 3])) and 0,
    "repeat repeats": lambda t, c: pg.repeat(t.m, c([3, 2]), axis=0),
    "roll shift": lambda t, c: pg.roll(t.m, c([2, 1]), axis=[0, 1]),
    "roll axis": lambda t, c: pg.roll(t.m, [1, 2], axis=c([1, 0])),
    "split indices_or_sections": lambda t, c: pg.split(t.x, c([1, 2])),
    "tile reps": lambda t, c: pg.tile(t.m, c([3, 2])),
    "tensordot axes": lambda t, c: pg.tensordot(t.m, t.n, c([[0, 1], [0, 1]])),
    "strided_slice axes": lambda t, c: pg.strided_slice(t.m, c([1, 0]), [0, 0], [1, 2]),
    "strided_slice starts": lambda t, c: pg.strided_slice(t.m, [0, 1], c([1, 0]), [2, 2]),
    "strided_slice ends": lambda t, c: pg.strided_slice(t.m, [0, 1], [0, 0], c([2, 1])),
    "strided_slice strides": lambda t, c: pg.strided_slice(t.m, [0, 1], [0, 0], [2, 2], c([2, 1])),
    "pad": lambda t, c: pg.pad(t.x, c([2, 1])),
    "argpartition kth": lambda t, c: pg.argpartition(t.x, c([0, 2])),
    "partition kth": lambda t, c: pg.partition(t.x, c([0, 2])),
    "array_split indices_or_sections": lambda t, c: pg.array_split(t.x, c([1, 2])),
    "dsplit indices_or_sections": lambda t, c: pg.dsplit(t.m[None], c([1, 2])),
    "hsplit indices_or_sections": lambda t, c: pg.hsplit(t.m, c([1, 2])),
    "vsplit indices_or_sections": lambda t, c: pg.vsplit(t.m, c([1, 2])),
    "column_stack arrays": lambda t, c: pg.column_stack(c([t.x, t.y])),
    "dstack arrays": lambda t, c: pg.dstack(c([t.x, t.y])),
    "hstack arrays": lambda t, c: pg.hstack(c([t.x, t.y])),
    "vstack arrays": lambda t, c: pg.vstack(c([t.x, t.y])),
    "choose choices": lambda t, c: pg.choose([0, 1, 0], c([t.x, t.y])),
    "select condlist": lambda t, c: pg.select(c([t.x > 0.0, t.y > 0.0]), [t.x, t.y]),
    "select choicelist": lambda t, c: pg.select([t.x > 0.0, t.y > 0.0], c([t.x, t.y])),
    "gradient axis": lambda t, c: pg.gradient(t.m, axis=c([1, 0])),
    "percentile axis": lambda t, c: pg.percentile(t.m, 40.0, axis=c([1, 0])),
    "quantile axis": lambda t, c: pg.quantile(t.m, 0.4, axis=c([1, 0])),
    "rot90 axes": lambda t, c: pg.rot90(t.m, axes=c([1, 0])),
    "getitem": lambda t, c: t.m[c([1, 0])],
    "take": lambda t, c: pg.take(t.x, c([1, 0])),
    "array": lambda t, c: pg.array(c([1.0, 0.0])),
    "operand": lambda t, c: t.x + c([1.0, 0.0, 2.0]),
    "feed": lambda t, c: pg.compile(t.graph)(c([1.0, 2.0, 3.0]), ONES),
    "interpret": lambda t, c: pg.interpret(t.graph, c([1.0, 2.0, 3.0]), ONES),
    "switch branches": lambda t, c: within(t, lambda: pg.switch(0, c([pg.sin, pg.cos]), t.x)),
    "LayerNorm": lambda t, c: within(t, lambda: nn.LayerNorm(c([2, 3]))),
    "nn.Softmax.__init__ axis": lambda t, c: nn.Softmax(c([1, 0]))(t.m),
    "transforms.batch axes": lambda t, c: transforms.batch(t.graph, 2, c([0, None])),
    "transforms.batch_sum axes": lambda t, c: transforms.batch_sum(t.graph, 2, c([0, None])),
    "transforms.hoist still": lambda t, c: transforms.hoist(t.graph, c([1, 0])),
    "transforms.linearize wrt": lambda t, c: transforms.linearize(t.graph, c([1, 0])),
    "transforms.taylor wrt": lambda t, c: pg.transforms.taylor(t.graph, 2, c([1, 0])),
    "transforms.taylor seeds": lambda t, c: pg.transforms.taylor(
        t.graph, 2, [1, 0], seeds=c([(1,), (1, 2)])
    ),
    "transforms.transpose wrt": lambda t, c: transforms.transpose(
        pg.trace(lambda x, y: x + y, ONES, ONES), c([1, 0])
    ),
    "transforms.unzip wrt": lambda t, c: transforms.unzip(t.linear, c([2, 3])),
    "transforms.lower allow": lambda t, c: transforms.lower(t.graph, c(["mean", "softmax"])),
    "transforms.lower deny": lambda t, c: transforms.lower(t.graph, deny=c(["mean", "softmax"])),
    "transforms.raise_ deny": lambda t, c: transforms.raise_(t.graph, deny=c(["softmax"])),
}
for operator in (*REDUCTIONS, "count_nonzero", "flip", "log_softmax", "logsumexp", "norm"):
    CALLS |= axis(operator)
OF_NUMBERS = ("nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar")
for operator in ("softmax", "average", "median", "nanmedian", "ptp", *OF_NUMBERS):
    CALLS |= axis(operator)
CALLS["squeeze axis"] = lambda t, c: pg.squeeze(pg.expand_dims(t.x, (0, 1)), axis=c([1, 0]))
CALLS["Variable.squeeze axis"] = lambda t, c: pg.expand_dims(t.x, (0, 1)).squeeze(axis=c([1, 0]))

# Where the order of the items means nothing, sets are as good as lists.
UNORDERED = {
    "grad no_grad_vars",
    "Optimizer.minimize no_grad_set",
    "check_grads modes",
    "transforms.lower allow",
    "transforms.lower deny",
    "transforms.raise_ deny",
}
# Dicts of these give dicts.
NAMED = {"Executor.run fetch_list", "trace", "vjp of results"}
# Takers of lists that only other parts of the compiler call, or whose list may be a function.
INNER = ("Builder.", "Kernel.", "extend.", "Scope.", "PrimgraphError.", "ArgumentError.")
OTHERS = {
    "Graph.in_order given",
    "Jacobian.__init__ inputs",
    "Hessian.__init__ inputs",
    "Jacobian.__init__ function",
    "Hessian.__init__ function",
    "fit feeds",
    "unknown_name known",
    # The order of these has no meaning.
    "compile skip",
    # Their own tests say what holders of layers and of parameters take.
    "nn.LayerDict.__init__ sublayers",
    "nn.LayerDict.update sublayers",
    "nn.LayerList.__init__ sublayers",
    "nn.LayerList.extend layers",
    "nn.ParameterList.__init__ parameters",
    "nn.ParameterList.extend parameters",
}
# Numbers for the axes of windows have a test beside those of convolutions.
WINDOWS = {"kernel_size", "stride", "padding", "dilation", "output_padding"}


def keys(items: Any) -> dict[Any, int]:
    """A dict with the items as keys: going through it gives what was meant, by chance."""
    return {hashed(item): number for number, item in enumerate(items)}


def values(items: Any) -> dict[int, Any]:
    return dict(enumerate(items))


def unordered(items: Any) -> set[Any]:
    return {hashed(item) for item in items}


def hashed(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item


def text(items: Any) -> str:
    return "".join(str(item) for item in items)


@pytest.mark.parametrize("name", CALLS)
def test_a_list_is_taken_and_a_tuple(name):
    CALLS[name](Model(), list)
    CALLS[name](Model(), tuple)


@pytest.mark.parametrize("name", CALLS)
def test_mappings_are_never_taken_for_lists(name):
    if name in NAMED:
        pytest.skip("a dict has a meaning there")
    for container in (keys, values):
        with pytest.raises(pg.PrimgraphError):
            CALLS[name](Model(), container)


@pytest.mark.parametrize("name", CALLS)
def test_sets_are_taken_only_where_no_order_counts(name):
    if name in UNORDERED:
        CALLS[name](Model(), unordered)
        return
    with pytest.raises(pg.PrimgraphError):
        CALLS[name](Model(), unordered)


@pytest.mark.parametrize("name", CALLS)
def test_texts_are_never_taken_for_lists(name):
    with pytest.raises(pg.PrimgraphError):
        CALLS[name](Model(), text)


def described(found: Any) -> str:
    return str(found) if isinstance(found, pg.Graph) else repr(found)


@pytest.mark.parametrize("name", CALLS)
def test_what_can_be_gone_through_but_once_is_read_whole_or_refused(name):
    expected = CALLS[name](Model(), list)
    try:
        found = CALLS[name](Model(), iter)
    except pg.PrimgraphError:
        return
    if isinstance(expected, pg.Graph | tuple):
        assert described(found) == described(expected)


def listed() -> set[str]:
    """The parameters of all that is public for which a list may be given, and not a number."""
    found = set()
    for module in (pg, nn, optimizer, transforms, extend, initializers):
        lead = module.__name__.removeprefix("primgraph").lstrip(".")
        lead = f"{lead}." if lead in ("nn", "transforms", "extend") else ""
        for name in getattr(module, "__all__", None) or dir(module):
            item = getattr(module, name)
            if not getattr(item, "__module__", "").startswith("primgraph") or name[0] == "_":
                continue
            for title, function in functions(lead + name, item):
                try:
                    kinds = _kinds_of(inspect.unwrap(function))
                except TypeError:
                    continue
                found |= {
                    f"{title} {p}" for p, (fits, _) in kinds.items() if fits([]) and not fits(3.5)
                }
    return found


def functions(name: str, item: Any) -> list[tuple[str, Any]]:
    """A function, or the constructor and methods of a class, by names."""
    if inspect.isfunction(item):
        return [(name, item)]
    if not inspect.isclass(item):
        return []
    members = [(n, inspect.getattr_static(item, n)) for n in dir(item)]
    public = [(n, f) for n, f in members if n == "__init__" or n[0] != "_"]
    return [(f"{name}.{n}", f) for n, f in public if inspect.isfunction(f)]


def test_every_parameter_that_takes_lists_is_among_them():
    """A new function that takes several things has to say what it does with sets and dicts."""
    own = {name.partition(".")[2] for name in CALLS}
    missing = {
        name
        for name in listed() - set(CALLS) - OTHERS
        if not name.startswith(INNER)
        and name.split()[-1] not in WINDOWS
        and name.split()[-1] != "origin"
        and not (name.partition(".")[2] and name.partition(".")[2] in own)
    }
    assert not missing
