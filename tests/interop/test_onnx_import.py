"""Models of ONNX as functions: parameters, sizes, subgraphs, and models that are refused."""

import pickle

import numpy as np
import pytest

import primgraph as pg

onnx = pytest.importorskip("onnx", reason="models are made by the package onnx")


def model(text, opset=18):
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


DENSE = """net (float[batch, 3] x) => (float[batch, 2] y)
<float[3, 2] weight = {1, 2, 3, 4, 5, 6}, float[2] bias = {0.5, -0.5}> {
  h = MatMul(x, weight)
  s = Add(h, bias)
  y = Tanh(s)
}"""


def test_initializers_are_parameters():
    f = pg.interop.from_onnx(model(DENSE))
    assert [*f.parameters] == ["weight", "bias"]
    assert str(f.specs) == "(f32[batch,3],)"
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
    expected = np.tanh(x @ f.parameters["weight"] + f.parameters["bias"])
    np.testing.assert_allclose(f(x), expected, rtol=1e-6)
    np.testing.assert_allclose(f(x=x[:1]), expected[:1], rtol=1e-6)
    zeros = {name: 0 * value for name, value in f.parameters.items()}
    assert not f.apply(zeros, x).any()


def test_models_are_differentiated_by_parameters_and_inputs():
    f = pg.interop.from_onnx(model(DENSE))
    x = np.linspace(-0.1, 0.1, 6, dtype="float32").reshape(2, 3)
    found = pg.grad(lambda p: pg.sum(f.apply(p, x)))(f.parameters)
    slope = 1 - f(x) ** 2
    np.testing.assert_allclose(found["bias"], slope.sum(0), rtol=1e-5)
    np.testing.assert_allclose(found["weight"], x.T @ slope, rtol=1e-4, atol=1e-6)
    by_input = pg.grad(lambda x: pg.sum(f(x)))(x)
    np.testing.assert_allclose(by_input, slope @ f.parameters["weight"].T, rtol=1e-5)
    assert pg.hessian(lambda x: pg.sum(f(x)))(x).shape == (2, 3, 2, 3)


def test_an_imported_model_is_compiled_and_pickled():
    f = pickle.loads(pickle.dumps(pg.interop.from_onnx(model(DENSE).SerializeToString())))
    kernel = pg.compile(pg.trace(f, *f.specs))
    x = np.ones((5, 3), "float32")
    np.testing.assert_allclose(kernel(x=x), f(x), rtol=1e-6)
    assert "return np.tanh(x @ k0 + k1)" in kernel.source
    assert "2 parameters" in repr(f)


def test_shapes_are_computed_from_dynamic_axes():
    text = """f (float[n, m, 2] x) => (float[k, l] y) <int64 zero = {0}, int64[1] rest = {-1}> {
      shape = Shape(x)
      first = Gather(shape, zero)
      start = Unsqueeze(first, first_axis)
      wanted = Concat <axis = 0> (start, rest)
      flat = Reshape(x, wanted)
      number = Cast <to = 1> (first)
      y = Div(flat, number)
    }""".replace("<int64 zero", "<int64[1] first_axis = {0}, int64 zero")
    f = pg.interop.from_onnx(model(text))
    for shape in ((2, 3, 2), (4, 1, 2)):
        x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        np.testing.assert_allclose(f(x), x.reshape(shape[0], -1) / shape[0], rtol=1e-6)
    assert str(pg.trace(f, *f.specs).output_types[0]) == "f32[n,2*m]"
    fixed = pg.interop.from_onnx(model(text), shapes={"x": (2, 3, 2)})
    assert str(fixed.specs) == "(f32[2,3,2],)"


RESHAPED = """f (float[2, 3] x, int64[1] shape) => (float[n] y) {
  y = Reshape(x, shape)
}"""


def test_elements_that_shapes_depend_on_are_known():
    with pytest.raises(pg.UnknownValueError, match=r"Reshape.*shape.*depend on \['shape'\]"):
        pg.interop.from_onnx(model(RESHAPED))
    f = pg.interop.from_onnx(model(RESHAPED), known={"shape": [6]})
    assert f(np.ones((2, 3), "float32")).shape == (6,)
    with pytest.raises(pg.UnknownKeyError, match="no 'shapes'"):
        pg.interop.from_onnx(model(RESHAPED), known={"shapes": [6]})


@pytest.mark.parametrize("operator", ["GatherND", "GatherElements <axis = 0>"])
def test_elements_of_constants_are_at_computed_places(operator):
    text = f"""f (int64[2, 1] i) => (int64[n] y) {{
      x = Constant <value = int64[3, 1] {{5, 6, 7}}> ()
      y = {operator} (x, i)
    }}"""
    f = pg.interop.from_onnx(model(text))
    assert f(np.array([[2], [-2]])).ravel().tolist() == [7, 6]


def test_parameters_that_shapes_depend_on_are_constants():
    text = """f (float[1, 1, 2, 2] x) => (float[1, 1, 4, 4] y)
    <float[4] scales = {1, 1, 2, 2}, float bias = {1.0}> {
      r = Resize <mode = "nearest"> (x, , scales)
      y = Add(r, bias)
    }"""
    f = pg.interop.from_onnx(model(text))
    assert [*f.parameters] == ["bias"]
    x = np.arange(4, dtype="float32").reshape(1, 1, 2, 2)
    assert f(x).tolist() == (x.repeat(2, 2).repeat(2, 3) + 1).tolist()


def test_all_operators_that_are_lacking_are_listed():
    text = """f (float[2] x) => (float[2] y) {
      a = Bernoulli2(x)
      b = RandomNormalLike(a)
      y = Bernoulli2(b)
    }"""
    with pytest.raises(pg.UnsupportedError) as raised:
        pg.interop.from_onnx(model(text))
    message = "Bernoulli2 (2 times, first at the node of a); RandomNormalLike (once"
    assert message in str(raised.value)


def test_subgraphs_are_branches_and_loops():
    text = """f (float x, int64 n) => (float y, float z) {
      zero = Constant <value = float {0}> ()
      above = Greater(x, zero)
      y = If(above) <then_branch = yes () => (float a) { a = Mul(x, x) },
                     else_branch = no () => (float a) { a = Neg(x) }>
      going = Constant <value = bool {1}> ()
      z = Loop(n, going, x) <body = step (int64 k, bool c, float s) => (bool d, float t) {
        d = Identity(c)
        t = Mul(s, x)
      }>
    }"""
    f = pg.interop.from_onnx(model(text), known={"n": 20})
    slope = pg.grad(lambda x: f(x)[0])
    for x in np.float32([0.9, -0.5]):
        y, z = f(x)
        assert y == (x * x if x > 0 else -x)
        np.testing.assert_allclose(z, x**21, rtol=1e-5)
        assert slope(x) == (2 * x if x > 0 else -1)
    assert {op.name for op in f.imported.graph.ops} >= {"cond", "scan"}


def test_functions_of_the_model_are_expanded():
    text = DENSE.replace("y = Tanh(s)", "y = own.twice <factor = 2.0> (s)")
    whole = f"""<ir_version: 8, opset_import: ["" : 18, "own" : 1]>\n{text}
    <domain: "own", opset_import: ["" : 18]> twice <factor> (x) => (y) {{
      c = Constant <value_float : float = @factor> ()
      y = Mul(x, c)
    }}"""
    f = pg.interop.from_onnx(onnx.parser.parse_model(whole))
    x = np.ones((1, 3), "float32")
    assert f(x).tolist() == [[2 * 9.5, 2 * 11.5]]


def test_names_become_identifiers():
    text = DENSE.replace(" x)", " class)").replace("(x,", "(class,")
    proto = model(text)
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "layer/1:in"
    f = pg.interop.from_onnx(proto)
    assert f(layer_1_in=np.ones((1, 3), "float32")).shape == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "y = Conv <pads = [1, 0, 0, 1], strides = [2, 1]> (x, x)",
        "y = MaxPool <kernel_shape = [2, 2], ceil_mode = 1, strides = [2, 1]> (x)",
        "y = AveragePool <kernel_shape = [2, 2], pads = [1, 1, 0, 0]> (x)",
        "y = Softmax <axis = 2> (x)",
        "y = InstanceNormalization(x, s, s)",
        "y, m, i = LayerNormalization(x, t)",
        'y = Resize <mode = "cubic"> (x, , scales)',
        "y = Gelu(x)",
        "y = ReduceLogSumExp(x)",
        "y = TopK(x, one)",
    ],
)
def test_derivatives_of_operators(text):
    declared = """f (double[1, 1, 3, 4] x) => (double[a, b, c, d] y)
    <double[1] s = {2}, double[4] t = {1, 2, 3, 4}, float[4] scales = {1, 1, 2, 1.5},
     int64[1] one = {1}> { %s }"""
    body = text.replace("y = TopK", "y, k = TopK")
    f = pg.interop.from_onnx(model(declared % body, opset=20))
    x = np.random.default_rng(0).normal(size=(1, 1, 3, 4))
    first = (lambda x: f(x)[0]) if isinstance(f(x), tuple) else f
    pg.check_grads(lambda x: pg.sum(first(x) ** 2), [x], order=2)
