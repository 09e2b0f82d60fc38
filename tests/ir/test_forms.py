"""What traced functions take and return, their kernels take and return too."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import primgraph as pg
from primgraph.errors import ArgumentError, FeedError
from primgraph.program.compile import optimize_graph

STYLES = ("planned", "readable")
X = np.array([1.0, 2.0, 3.0])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any


def same(found: Any, expected: Any) -> bool:
    """Whether two values have the same containers, of exactly the same classes, and arrays."""
    if isinstance(expected, np.ndarray):
        return type(found) is np.ndarray and np.array_equal(found, expected)
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(expected, Layer):
        return same(found.weight, expected.weight) and same(found.bias, expected.bias)
    if expected is None:
        return True
    return len(found) == len(expected) and all(map(same, found, expected))


def results_of(x: Any) -> dict[str, Any]:
    """A function for each form of results; `x` is an array or a variable, of three elements."""
    y = x * 2.0
    return {
        "variable": y,
        "tuple": (x + 1.0, y),
        "tuple of one": (y,),
        "list": [x + 1.0, y],
        "list of one": [y],
        "dict": {"second": y, "first": x + 1.0},
        "dict of numbers": {2: y, 1: x + 1.0},
        "dict of one": {"only": y},
        "named tuple": Pair(x + 1.0, y),
        "dataclass": Layer(weight=y, bias=x - 1.0),
        "nested": {"grads": [Layer(y, None), (x,)], "loss": y, "none": None, "empty": ({}, [], ())},
        "the same twice": {"a": y, "b": (y, y)},
        "an argument": [x, {"x": x}],
    }


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("math", ["exact", "finite", "fast"])
@pytest.mark.parametrize("kind", list(results_of(X)))
def test_a_kernel_returns_what_the_function_returned(kind, math, style):
    graph = pg.trace(lambda x: results_of(x)[kind], pg.spec(3))
    kernel = pg.compile(graph, math=math, style=style)
    expected = results_of(X)[kind]
    assert same(kernel(X), expected)
    assert same(kernel([1, 2, 3]), expected)
    assert same(kernel(X, borrow=True), expected)
    assert same(pickle.loads(pickle.dumps(kernel))(X), expected)
    assert same(pg.compile(pickle.loads(pickle.dumps(graph)), style=style)(X), expected)
    assert same(copy.deepcopy(kernel)(X), expected)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("kind", list(results_of(X)))
def test_a_function_takes_what_a_function_returns(kind, style):
    """Every form of results is one of arguments, and comes back the same."""
    example = results_of(X)[kind]
    kernel = pg.compile(pg.trace(lambda tree, y: (tree, y + 1.0), example, pg.spec(3)), style=style)
    assert same(kernel(example, X), (example, X + 1.0))
    assert same(kernel(y=X, tree=example), (example, X + 1.0))


@pytest.mark.parametrize("style", STYLES)
def test_numbers_have_forms_too(style):
    """Programs of single numbers run on other code than those of arrays."""
    kernel = pg.compile(pg.trace(lambda x: {"y": x * 2.0}, pg.spec(())), style=style)
    assert same(kernel(3.0), {"y": np.array(6.0)})
    assert same(kernel(np.array(3.0)), {"y": np.array(6.0)})
    kernel = pg.compile(pg.trace(lambda p: p["x"] * p["y"], {"x": 1.0, "y": 1.0}), style=style)
    assert same(kernel({"y": 3.0, "x": np.array(2.0)}), np.array(6.0))
    kernel = pg.compile(pg.trace(lambda x: (x, x + 1.0), pg.spec(())), style=style)
    assert same(kernel(np.array(1.0)), (np.array(1.0), np.array(2.0)))


def test_graphs_made_otherwise_keep_lists():
    graph = pg.trace(lambda x: {"y": x * 2.0}, pg.spec(3))
    assert type(pg.compile(pg.parse(str(graph)))(X)) is list
    assert type(pg.interpret(graph, X)) is list
    assert type(pg.compile(graph).flat(X)) is list
    assert pg.compile(graph).flat.flat(X)[0].tolist() == [2.0, 4.0, 6.0]
    with pg.Program() as program:
        y = pg.data("x", (3,)) * 2.0
    assert type(pg.compile(program.graph([y]))(X)) is list
    assert type(pg.Executor().kernel(program, [y])(X)) is list


TRANSFORMS = {
    "lower": pg.transforms.lower,
    "simplify": pg.transforms.simplify,
    "fold_constants": pg.transforms.fold_constants,
    "dead_code": pg.transforms.dead_code,
    "clean_up": pg.transforms.clean_up,
    "raise_": pg.transforms.raise_,
    "join_products": pg.transforms.join_products,
    "matrix_chain": pg.transforms.matrix_chain,
    "linearize": pg.transforms.linearize,
    "batch": lambda graph: pg.transforms.batch(graph, 2),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_give_lists_also_where_nothing_changes(name):
    traced = pg.trace(lambda x: {"y": x * 2.0}, pg.spec(3))
    with pg.transforms.debug(False):
        assert TRANSFORMS[name](traced).form is None
    with pg.transforms.debug():
        assert TRANSFORMS[name](traced).form is None
    assert traced.form is not None
    assert optimize_graph(traced).form is traced.form


def test_equal_graphs_of_other_forms_return_their_own():
    """Code is shared by equal graphs, and forms do not count there."""
    functions = [
        lambda x: x * 2.0,
        lambda x: [x * 2.0],
        lambda x: (x * 2.0,),
        lambda x: {"a": x * 2.0},
        lambda x: {"b": x * 2.0},
    ]
    for spec, at in ((pg.spec(3), X), (pg.spec(()), np.array(2.0))):
        for style in STYLES:
            graphs = [pg.trace(f, spec) for f in functions]
            assert len(set(graphs)) == 1
            kernels = [pg.compile(g, style=style) for g in graphs]
            for kernel, function in zip(kernels, functions, strict=True):
                assert same(
                    kernel(at), function(np.asarray(at)) if at.shape else function_at(at, function)
                )


def function_at(at: Any, function: Any) -> Any:
    """What `function` gives at a number, with arrays in it as a kernel returns them."""
    found = function(at)
    if isinstance(found, dict):
        return {k: np.asarray(v) for k, v in found.items()}
    if isinstance(found, list | tuple):
        return type(found)(np.asarray(v) for v in found)
    return np.asarray(found)


# Arguments by name.


def energy(x, stiffness):
    return pg.sum(stiffness * x**2)


@pytest.mark.parametrize("style", STYLES)
def test_arrays_are_given_by_name(style):
    kernel = pg.compile(pg.trace(energy, pg.spec(3), pg.spec(())), style=style)
    expected = kernel(X, 2.0)
    assert kernel(x=X, stiffness=2.0) == kernel(stiffness=2.0, x=X) == expected
    assert kernel(X, stiffness=2.0) == expected
    assert kernel(stiffness=2.0, x=X, borrow=True) == expected
    with pg.Program() as program:
        x, k = pg.data("x", (3,)), pg.data("k", ())
        y = energy(x, k)
    by_hand = pg.compile(program.graph([y]), style=style)
    assert by_hand(k=2.0, x=X) == [expected]


WRONG_CALLS = [
    (((X,), {}), "takes 2 arrays, 1 given", "missing: 'stiffness'"),
    (((X, 1.0, 2.0), {}), "takes 2 arrays, 3 given", "it takes 'x', 'stiffness'"),
    (((X,), {"stifness": 1.0}), "no input 'stifness'", "did you mean 'stiffness'?"),
    (((X,), {"x": X}), "'x' is given twice", ""),
    (((), {"x": X}), "missing 'stiffness'", ""),
    (((X, 1.0), {"k": 1.0}), "no input 'k'", "it takes 'x', 'stiffness'"),
    (((X, 1.0, 1.0), {"x": 1.0}), "'x' is given twice", ""),
    (((), {"x": X, "stiffness": [1.0, 2.0]}), "input 'stiffness' is f64[]", ""),
]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("call", "message", "hint"), WRONG_CALLS, ids=lambda v: str(v)[:40])
def test_wrong_names_are_told(call, message, hint, style):
    kernel = pg.compile(pg.trace(energy, pg.spec(3), pg.spec(())), style=style)
    with pytest.raises(FeedError) as caught:
        kernel(*call[0], **call[1])
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_parameters_may_be_keywords_only_and_have_any_name():
    def scaled(self, *, out, function):
        return self * out + function

    graph = pg.trace(scaled, pg.spec(3), out=pg.spec(()), function=pg.spec(()))
    kernel = pg.compile(graph)
    # `out` is an argument of every kernel, so this one goes by position.
    assert kernel(X, 2.0, function=1.0).tolist() == [3.0, 5.0, 7.0]
    assert kernel(X, 2.0, 1.0).tolist() == [3.0, 5.0, 7.0]
    with pytest.raises(ArgumentError, match="no argument 'scale'"):
        pg.trace(energy, pg.spec(3), pg.spec(()), scale=pg.spec(()))


NESTED = {"w": [np.ones(3), np.ones(2)], "b": Pair(np.ones(()), None)}


WRONG_CONTAINERS = [
    ({"w": NESTED["w"]}, "'params': missing 'b'"),
    ({**NESTED, "c": X}, "'params' has no 'c'"),
    ({**NESTED, "w": [X]}, "'params.w' has 2 entries, 1 given"),
    ({**NESTED, "w": {"a": X}}, "'params.w' is a list of 2: dict"),
    ({**NESTED, "w": X}, "'params.w' is a list of 2: ndarray"),
    ({**NESTED, "b": (1.0, None)}, "'params.b' is a Pair: tuple"),
    ({**NESTED, "b": Pair(1.0, 2.0)}, "'params.b.right' is None: float"),
    ({**NESTED, "w": [X, X]}, "input 'params.w.1' is f64[2]: f64[3] is given"),
    (X, "'params' is a dict with 'w', 'b': ndarray"),
    (None, "'params' is a dict with 'w', 'b': NoneType"),
]


@pytest.mark.parametrize(("given", "message"), WRONG_CONTAINERS, ids=lambda v: str(v)[:40])
def test_containers_that_differ_are_told_with_their_place(given, message):
    kernel = pg.compile(pg.trace(lambda params: params["w"][0] * params["b"].left, NESTED))
    with pytest.raises(FeedError) as caught:
        kernel(given)
    assert message in caught.value.message
    assert kernel({"b": NESTED["b"], "w": tuple(NESTED["w"])}).tolist() == [1.0, 1.0, 1.0]


def test_arguments_have_names_that_say_where_they_are():
    graph = pg.trace(lambda params, x: params["b"].left * x, NESTED, pg.spec(()))
    assert [v.hint for v in graph.inputs] == ["params.w.0", "params.w.1", "params.b.left", "x"]


def test_keys_that_read_alike_are_told_apart():
    example = {"a.b": X, "a": {"b": X * 2.0}, 1: X * 3.0, "1": X * 4.0}
    kernel = pg.compile(pg.trace(lambda p, q=None: {**p}, example))
    assert same(kernel(example), example)
    assert len({v.hint for v in kernel.graph.inputs}) == 4


def test_what_is_no_array_and_no_container_is_refused():
    for strange in ({1.0}, "text", iter([1.0]), object(), {"a": {1.0}}, [b"text"]):
        with pytest.raises(ArgumentError, match="f returned"):
            pg.trace(lambda x, r=strange: r, pg.spec(3))
        with pytest.raises(ArgumentError):
            pg.trace(lambda x: x, strange)
    for nothing in (None, (), {}, [], {"a": None}):
        with pytest.raises(ArgumentError, match="f returned"):
            pg.trace(lambda x, r=nothing: r, pg.spec(3))
    within: list[Any] = []
    within.append(within)
    with pytest.raises(ArgumentError, match="nested deeper"):
        pg.trace(lambda x: within, pg.spec(3))
    with pytest.raises(ArgumentError, match="strings or integers"):
        pg.trace(lambda x: {(1, 2): x}, pg.spec(3))


def test_a_gradient_that_is_none_stays_none():
    kernel = pg.compile(pg.trace(lambda x, y: pg.grad(pg.sum(x * x), [x, y]), X, X))
    assert same(kernel(X, X), [2.0 * X, None])


def test_lists_of_numbers_are_one_array():
    graph = pg.trace(lambda x, y: x + y, [1.0, 2.0], [[1.0, 2.0], (3.0, 4.0)])
    assert [v.shape for v in graph.inputs] == [(2,), (2, 2)]
    graph = pg.trace(lambda xs: xs[0] + xs[1], [np.ones(2), 1.0])
    assert [v.shape for v in graph.inputs] == [(2,), ()]


# Arrays to write to.


@pytest.mark.parametrize("style", STYLES)
def test_results_are_written_into_what_is_given(style):
    kernel = pg.compile(
        pg.trace(lambda x: {"a": x + 1.0, "b": (x * 2.0, None)}, pg.spec(3)), style=style
    )
    a, b = np.empty(3), np.empty(3)
    for out in ({"a": a, "b": (b, None)}, {"b": (b, None), "a": a}, [a, b], (a, b)):
        a[...] = b[...] = 0.0
        found = kernel(X, out=out)
        assert found["a"] is a
        assert found["b"][0] is b
        assert same(found, {"a": X + 1.0, "b": (X * 2.0, None)})
    for out in ({"a": a, "b": None}, {"a": a, "b": (None, None)}, [a, None]):
        found = kernel(X, out=out)
        assert found["a"] is a
        assert found["b"][0].tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ArgumentError, match="'out': missing 'b'"):
        kernel(X, out={"a": a})
    with pytest.raises(ArgumentError, match="'out' is a dict"):
        kernel(X, out=a)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("shape", [(), (3,)])
def test_a_single_result_is_written_into_an_array_or_a_list_of_it(shape, style):
    kernel = pg.compile(pg.trace(lambda x: x * 2.0, pg.spec(shape)), style=style)
    target = np.zeros(shape)
    assert kernel(np.ones(shape), out=target) is target
    assert np.all(target == 2.0)
    assert kernel(np.zeros(shape), out=[target]) is target
    assert np.all(target == 0.0)
    assert same(kernel(np.ones(shape), out=[None]), np.full(shape, 2.0))


def test_donated_arrays_are_counted_as_they_stand_in_the_graph():
    graph = pg.trace(lambda s, g: {"w": s["w"] - g}, {"b": pg.spec(3), "w": pg.spec(3)}, pg.spec(3))
    w = np.ones(3)
    found = pg.compile(graph, donated={0: 1})({"b": X, "w": w}, X)
    assert found["w"] is w
    assert w.tolist() == [0.0, -1.0, -2.0]


# Files.


def saved(kernels: list[Any], folder: Any) -> tuple[str, dict[str, Any]]:
    """The text of the file of `kernels`, and what it defines where primgraph is not imported."""
    path = folder / "saved.py"
    kernels[0].save(path, *kernels[1:])
    text = path.read_text()
    names: dict[str, Any] = {"__name__": "saved"}
    exec(compile(text, str(path), "exec"), names)
    return text, names


def like(found: Any, expected: Any) -> bool:
    """As `same`, where classes of the user's may be others of the same names and fields."""
    if isinstance(expected, Pair | Layer):
        fields = Pair._fields if isinstance(expected, Pair) else ("weight", "bias")
        named = type(found).__name__ == type(expected).__name__
        return named and all(like(getattr(found, f), getattr(expected, f)) for f in fields)
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(like(found[k], expected[k]) for k in found)
    if isinstance(expected, list | tuple):
        pairs = zip(found, expected, strict=True)
        return type(found) is type(expected) and all(like(f, e) for f, e in pairs)
    return same(found, expected)


@pytest.mark.parametrize("kind", list(results_of(X)))
def test_a_saved_function_takes_and_returns_what_the_function_did(kind, tmp_path):
    example = results_of(X)[kind]

    def both(tree, x):
        return results_of(x)[kind], tree

    text, names = saved([pg.compile(pg.trace(both, example, pg.spec(3)))], tmp_path)
    assert "primgraph" not in text.split("\n", 1)[1]
    assert like(names["both"](example, X), (example, example))
    assert like(names["both"](x=X.tolist(), tree=example), (example, example))


def layers(params, x):
    hidden = x * params["w"][0]
    return {"hidden": hidden, "out": Layer(hidden + params["b"].left, params["w"][1])}


def shift(pair):
    moved = pair.left + 1.0
    return Layer(moved, pair.right), pair.left


def test_the_source_shows_containers_and_names_results(tmp_path):
    kernels = [
        pg.compile(pg.trace(layers, NESTED, pg.spec(3))),
        pg.compile(pg.trace(shift, Pair(pg.spec(3), pg.spec(2)))),
    ]
    text, names = saved(kernels, tmp_path)
    for line in (
        "from dataclasses import make_dataclass",
        'Layer = make_dataclass("Layer", ["weight", "bias"])',
        "def layers(params, x):",
        "    params.w.0: float64, shape (3,)",
        "    params.b.left: float64, shape ()",
        '    """Compute hidden, out.weight and out.bias.',
        "        hidden, out.weight: float64, shape (3,)",
        '    params_w_0 = as_array(params["w"][0], np.float64, (3,), "params_w_0")',
        '    params_b_left = as_array(params["b"].left, np.float64, (), "params_b_left")',
    ):
        assert line in text.splitlines()
    assert text.count("make_dataclass(") == 1
    assert like(names["layers"](NESTED, X), kernels[0](NESTED, X))
    pair = Pair(X, np.ones(2))
    assert like(names["shift"](pair), kernels[1](pair))
    assert type(names["layers"](NESTED, X)["out"]) is type(names["shift"](pair)[0])
    assert (
        'return {\n        "hidden"' in kernels[0].source or 'return {"hidden"' in kernels[0].source
    )
    assert "# Layer is a class, in the table beside this code." in kernels[0].source
    with pytest.raises(ValueError, match=r"params\.w must have length 2"):
        names["layers"]({**NESTED, "w": [X]}, X)
    with pytest.raises(ValueError, match=r"params_w_1 must have shape \(2,\)"):
        names["layers"]({**NESTED, "w": [X, X]}, X)


def test_results_of_plain_assignments_are_named(tmp_path):
    def model(x):
        energy = pg.sum(x * x)
        force = x * -2.0
        return energy, force, x

    text, _ = saved([pg.compile(pg.trace(model, pg.spec(3)))], tmp_path)
    assert '    """Compute energy, force and x.' in text
    assert "\n        energy: float64, shape ()\n        force, x: float64, shape (3,)\n" in text


HOSTILE = (
    '"',
    "'",
    "\\",
    "\n",
    '"""',
    "}",
    "{x}",
    "ü",
    "\u202e",
    "\ud800",
    "np",
    "",
    "a" * 10_000,
    "#",
)


@pytest.mark.parametrize("style", STYLES)
def test_keys_of_any_text_are_data(style, tmp_path):
    example = {key: np.full(2, float(i)) for i, key in enumerate(HOSTILE)}
    graph = pg.trace(lambda tree: {k: tree[k] + 1.0 for k in reversed(tree)}, example)
    kernel = pg.compile(graph, style=style)
    expected = {key: example[key] + 1.0 for key in reversed(example)}
    assert same(kernel(example), expected)
    text, names = saved([kernel], tmp_path)
    assert same(names["kernel" if graph.name == "kernel" else graph.name](example), expected)
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("style", STYLES)
def test_long_programs_and_many_arrays_have_containers_too(style, tmp_path):
    example = {"many": [np.ones(1) * k for k in range(300)], "x": np.ones(1)}

    def long(tree, *, y):
        x = tree["x"]
        for part in tree["many"] * 4:
            x = pg.sin(x + part) + y
        return {"x": x, "all": [part * y for part in tree["many"]]}

    kernel = pg.compile(pg.trace(long, example, y=pg.spec(1)), style=style)
    found = kernel(example, y=X[:1])
    assert len(found["all"]) == 300
    assert found["all"][299] == 299.0
    _, names = saved([kernel], tmp_path)
    again = names["long"](example, X[:1])
    assert np.allclose(again["x"], found["x"])
    assert [a.item() for a in again["all"]] == [a.item() for a in found["all"]]


# Tools that take a function, a graph or a kernel.


def test_tools_take_the_containers_of_a_function():
    def loss(params, x):
        return {"loss": pg.sum(params["w"] * x), "scaled": params["b"] * x}

    params = {"w": X, "b": np.array(2.0)}
    graph = pg.trace(loss, params, X)
    kernel = pg.compile(graph)
    assert [a.tolist() for a in pg.check_finite(kernel, params, X)] == [14.0, [2.0, 4.0, 6.0]]
    assert [a.tolist() for a in pg.check_finite(loss, params, X)] == [14.0, [2.0, 4.0, 6.0]]
    pg.check_grads(loss, [params, X])
    pg.check_grads(graph, [params, X])
    for target in (graph, kernel):
        assert pg.profile(target, [params, X], repeats=1).seconds > 0.0
        assert pg.profile(target, {"x": X, "params": params}, repeats=1).seconds > 0.0
    assert pg.growth(loss, params, X, orders=1).equations[0] > 0


def two_parts(p, x):
    return {"a": pg.sum(p["w"] * x), "b": [p["b"] * x]}


def test_kernels_of_compiled_functions_have_the_containers_of_traced_ones(tmp_path):
    p, x = {"w": np.arange(3.0), "b": np.array(2.0)}, np.ones(3)
    kernel, wanted = pg.jit(two_parts).kernel(p, x), pg.compile(pg.trace(two_parts, p, x))
    for end in (".py", ".c"):
        texts = []
        for folder, made in (("one", kernel), ("other", wanted)):
            (tmp_path / folder).mkdir(exist_ok=True)
            made.save(tmp_path / folder / f"parts{end}")
            texts.append([f.read_text() for f in sorted((tmp_path / folder).iterdir())])
        assert texts[0] == texts[1]
    for made in (kernel, pg.jit(two_parts, target="c").kernel(p, x)):
        found = made(p, x)
        assert pg.tree.structure(found) == pg.tree.structure(wanted(p, x))
        np.testing.assert_array_equal(found["a"], 3.0)


def test_kernels_of_compiled_functions_take_what_is_not_static_and_tensors_elsewhere():
    t = pg.tensor(np.full(3, 2.0))
    compiled = pg.jit(lambda p, n, *, k=1.0: {"r": p["x"] * t * n * k}, static_argnames="n")
    x = np.ones(3)
    kernel = compiled.kernel({"x": x}, n=2, k=3.0)
    np.testing.assert_array_equal(kernel({"x": x}, 3.0, t.numpy())["r"], np.full(3, 12.0))
    assert pg.jit(lambda x: x * 2).kernel(x)(x).shape == (3,)
    sized = pg.jit(lambda p: {"s": pg.sum(p["x"])}, sizes={"p['x']": ("N",)}).kernel({"x": x})
    assert sized({"x": np.ones(5)})["s"] == 5
    by_pairs = pg.jit(lambda p: {(1, 2): p[1, 2] * 2}).kernel({(1, 2): x})
    np.testing.assert_array_equal(by_pairs(x)[0], 2 * x)
