"""Code for all sizes: what it says, that it is right at each, and when it is what runs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sized_functions import FUNCTIONS, arrays_for, built

import primgraph as pg
from primgraph import special as s
from primgraph import transforms
from primgraph.codegen.ops.table import CARDS
from primgraph.codegen.targets.readable.standalone import standalone_source
from primgraph.ir.primitive import Op
from primgraph.ir.sizes import type_at
from primgraph.program.compile import generic, optimize_graph

SIZES = (0, 1, 2, 7, 33)
RUFF = pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="needs ruff")

# Elementwise primitives of floats between 0.2 and 0.9, above 1, and of integers and booleans.
INSIDE = [
    "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "cosh", "erf", "erfc",
    "expm1", "floor", "log1p", "round", "sigmoid", "sinh", "sqrt", "rsqrt", "tan",
]  # fmt: skip
PAIRS = [
    "arctan2", "floor_divide", "logaddexp", "maximum", "minimum", "power", "remainder",
    "nextafter", "unless_nan",
]  # fmt: skip
RELATIONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]


def _text(lines: Sequence[tuple[str, str]], inputs: str) -> str:
    """A graph with an equation for each type and right-hand side, all of which are results."""
    body = "".join(f"  %{i}: {type} = {right}\n" for i, (type, right) in enumerate(lines))
    results = ", ".join(f"%{i}" for i in range(len(lines)))
    return f"graph f({inputs}) {{\n{body}  return {results}\n}}"


_F = "f64[N,3]"
TEXTS = {
    "floats": _text(
        [(_F, f"{op}(%x)") for op in INSIDE]
        + [(_F, f"{op}(%x, %y)") for op in PAIRS]
        + [("bool[N,3]", f"{op}(%x, %y)") for op in RELATIONS]
        + [(_F, "integer_pow(%x, n=3)"), (_F, "integer_pow(%x, n=2)")],
        "%x: f64[N,3], %y: f64[N,3]",
    ),
    "integers": _text(
        [
            *[("i64[N,3]", f"{op}(%x, %y)") for op in BITS],
            ("i64[N,3]", "bitwise_not(%x)"),
            ("f64[N,3]", "bitcast(%x, dtype=f64)"),
        ],
        "%x: i64[N,3], %y: i64[N,3]",
    ),
    "booleans": _text(
        [("bool[N]", f"{op}(%x, %y)") for op in LOGICAL] + [("bool[N]", "logical_not(%x)")],
        "%x: bool[N], %y: bool[N]",
    ),
    "random": _text(
        [
            ("f64[N,2*M]", "random_uniform(%k, dtype=f64, high=1.0, low=-1.0, shape=(N,2*M))"),
            ("bool[N+1]", "random_bernoulli(%k, p=0.5, shape=(N+1,))"),
            ("f64[N]", "integer_pow(%x, n=2)"),
            ("f64[N]", 'random_variate(%k, %2, name="standard_gamma")'),
        ],
        "%k: i64[], %x: f64[N], %y: f64[M]",
    ),
    "products": _text(
        [("f64[3]", "reduce_prod(%x, axes=(0,))"), ("i64[N]", "argmin(%x, axis=1)")],
        "%x: f64[N,3]",
    ),
    "numbers": _text(
        [
            ("f64[]", "extent(dtype=f64, shape=(), size=N)"),
            ("f64[N,2]", "extent(dtype=f64, shape=(N,2), size=2*N+1)"),
            ("f32[N]", "full(dtype=f32, shape=(N,), value=0.5)"),
            ("i64[N,M,2]", "iota(axis=1, dtype=i64, shape=(N,M,2))"),
            ("f64[2*N,M]", "iota(axis=0, dtype=f64, shape=(2*N,M))"),
            (_F, "power(%x, %7)"),
        ],
        "%x: f64[N,3], %y: f64[M]",
    ).replace("  %5:", f"  %7: {_F} = extent(dtype=f64, shape=(N,3), size=N)\n  %5:"),
}


def _positive(x: Any) -> Any:
    """A positive definite matrix, f64[N,N]."""
    return x @ x.T + 2.0 * pg.eye(x.shape[0])


# Functions of `x`, f64[N,3], and `v`, f64[M], and of N and M.
TEXTS["at places"] = _text(
    [
        ("f64[N,7]", "placed(%x, shape=(N,7), starts=(1,), strides=((2,),))"),
        ("f64[N,3,3]", "placed(%x, shape=(N,3,3), starts=(0,), strides=((4,),))"),
    ],
    "%x: f64[N,3]",
)
TEXTS["elements of a triangle"] = _text(
    [
        ("i64[N]", "iota(axis=0, dtype=i64, shape=(N,))"),
        ("f64[N,3]", "sparse_triangular_solve(%v, %x, %0, %0, reverse=False)"),
    ],
    "%x: f64[N,3], %v: f64[N]",
)
TEXTS["refused where some are true"] = """
graph f(%x: f64[N,3]) {
  %0: bool[N,3] = not_equal(%x, %x)
  %1: f64[N,3] = unless_any(%x, %0, message="some are NaN")
  return %1
}"""
MORE: dict[str, Callable[..., Any]] = {
    "in order": lambda x, v, n, m: (
        pg.sort(x, 0),
        pg.argsort(x, 0),
        pg.searchsorted(pg.sort(v), x),
    ),
    "so far": lambda x, v, n, m: (
        pg.cumprod(pg.stop_gradient(v), 0),
        pg.cummax(v, 0),
        pg.cummin(v, 0),
    ),
    "eigenvalues": lambda x, v, n, m: pg.linalg.eigvalsh(_positive(x)),
    "two sizes": lambda x, v, n, m: pg.outer(pg.sum(x, 1), v) / (n + m),
    "down from the middle": lambda x, v, n, m: v[::-1][: m // 2] * 2.0,
    "down to the middle": lambda x, v, n, m: v[: m // 2][::-1] * 2.0,
    "a few down": lambda x, v, n, m: v[::-1][: n.min(3)] * 2.0,
    "every second down": lambda x, v, n, m: v[::-2] * 2.0,
    "from the end": lambda x, v, n, m: v[m - 1 :] * v[: m - (m - 1)],
    "reshape in two": lambda x, v, n, m: pg.broadcast_to(v, (3 * n, m)).reshape(3, n, m) * 1.5,
    "a transposed one reshaped": lambda x, v, n, m: x.T.reshape(n * 3),
    "itself": lambda x, v, n, m: x.reshape(n, 3, 1).reshape(-1),
    "quotients": lambda x, v, n, m: pg.zeros(((n + 1) // 2, m % 3 + 1)) + n // 2 + m % 3 + x[0, 0],
    "powers of sizes": lambda x, v, n, m: pg.sum(v) * (n * n + n * m - 3),
    "sizes and integers": lambda x, v, n, m: pg.cast(pg.sum(v), "int64") * n - m,
    "clipped": lambda x, v, n, m: pg.clip(x, 0, n) + pg.where(x > n, n, 2.0),
    "float32": lambda x, v, n, m: pg.cast(x, "float32") / n,
    "halves": lambda x, v, n, m: pg.cast(x, "float16") * pg.cast(x, "float16") / n,
    "mean": lambda x, v, n, m: pg.mean(x) * pg.var(v),
    "spectra": lambda x, v, n, m: (
        *pg.linalg.eigh(_positive(x)),
        pg.linalg.eigvalsh(_positive(x)),
        *pg.linalg.svd(x),
        pg.linalg.svdvals(x),
        pg.linalg.pinv(x),
        *pg.linalg.qr(x),
    ),
    "systems": lambda x, v, n, m: pg.linalg.solve(_positive(x), x) * pg.linalg.det(_positive(x)),
    "factors": lambda x, v, n, m: (
        (pg.linalg.cholesky(_positive(x)) + pg.linalg.inv(_positive(x)))
        * pg.linalg.slogdet(_positive(x))[1]
    ),
    "functions of matrices": lambda x, v, n, m: (
        pg.linalg.expm(_positive(x) / (n + 5)),
        pg.linalg.sqrtm(_positive(x)),
        pg.linalg.logm(_positive(x)),
        pg.assume(_positive(x), "positive_definite"),
    ),
    "triangles": lambda x, v, n, m: pg.linalg.lu(_positive(x)),
    "spectrum of any matrix": lambda x, v, n, m: pg.linalg.eig(
        pg.triu(_positive(x)) + pg.eye(n) * pg.arange(n)
    ),
    "parts": lambda x, v, n, m: (
        pg.real(z := pg.complex(x, x * n)),
        pg.imag(pg.conj(z)) + pg.abs(z),
    ),
    "spectra of series": lambda x, v, n, m: (
        pg.abs(pg.fft.fft(x, axis=1)) + pg.fft.irfft(pg.fft.rfft(x, axis=1), 3, axis=1)
    ),
    "gamma and its kin": lambda x, v, n, m: (
        s.gammaln(x * x + 0.5) + s.gamma(x * x + 0.5) + s.digamma(x * x + 0.5),
        s.betaln(x * x + 0.5, pg.asarray(n) + 1.0) + s.beta(x * x + 0.5, 2.0),
        s.gammainc(x * x + 0.5, 1.5) + s.poch(x, 1.5) + s.betainc(x * x + 0.5, 1.5, 0.3),
    ),
    "errors and logarithms": lambda x, v, n, m: (
        s.erfinv(pg.tanh(x)) + s.erfcinv(pg.tanh(x) + 1.0) + s.erfcx(x) + s.log_ndtr(x),
        s.xlogy(x, x * x + 0.1) + s.xlog1py(x, x * x) + s.logit(pg.sigmoid(x)),
    ),
    "by SciPy": lambda x, v, n, m: s.j0(x) / n,
    "by parameters": lambda x, v, n, m: (
        pg.jvp(lambda a: s.jv(a, 2.0) + s.hyp2f1(a, 2.0, 1.5, 0.3), x, x)[1],
        pg.jvp(lambda a: s.zeta(a * a + 2.0, 1.5) + s.hyp1f1(a, 1.5, 0.3), x, x)[1],
    ),
    "windows": lambda x, v, n, m: pg.avg_pool1d(x[None], 2, 1),
    "mask": lambda x, v, n, m: pg.where(pg.arange(m) < m // 2, v, 0.0),
    "scan": lambda x, v, n, m: pg.scan(lambda c, r: (pg.tanh(c + r), c * r), x[0] * 0.0, x),
    "scan of a length": lambda x, v, n, m: pg.scan(
        lambda c, _: (c * 0.9 + v, pg.sum(c)), v, None, length=n
    ),
    "scan down": lambda x, v, n, m: pg.scan(
        lambda c, r: (c + r / n, c[: m // 2]), v, x[:, :1], reverse=True
    ),
    "fori": lambda x, v, n, m: pg.fori_loop(0, n, lambda i, c: c + v / (i + 1.0), v),
    "while": lambda x, v, n, m: pg.while_loop(
        lambda c: pg.sum(c) < 50.0, lambda c: c * 1.5 + 1.0, pg.abs(v) + 1.0, max_trips=20
    ),
    "cond": lambda x, v, n, m: pg.cond(
        pg.sum(x) > 0, lambda a: a * n, lambda a: pg.zeros(m) - a, v
    ),
    "scan in scan": lambda x, v, n, m: pg.scan(
        lambda c, r: (pg.scan(lambda d, s: (d + s * r[0] / m, None), c, v)[0], c), pg.sum(v), x
    ),
}


@cache
def _built(name: str) -> pg.Graph:
    return built(name, pg.dim("N"))[0]


@cache
def _graph(name: str) -> pg.Graph:
    """The function with its gradient, and that of the gradient, by `x` and `v`."""
    with pg.Program("f") as program:
        n, m = pg.dim("N"), pg.dim("M")
        x, v = pg.data("x", (n, 3)), pg.data("v", (m,))
        found = MORE[name](x, v, n, m)
        results = [z for z in (found if isinstance(found, tuple) else (found,)) if z is not None]
        floats = [pg.sum(pg.sin(z)) for z in results if z.dtype == "float64"]
        first = []
        if floats and name not in ("spectra", "eigenvalues", "spectrum of any matrix"):
            first = [g for g in pg.grad(sum(floats[1:], floats[0]), [x, v]) if g is not None]
            sums = [pg.sum(g * g) for g in first]
            second = pg.grad(sum(sums[1:], sums[0]), [x, v]) if sums else []
            first += [g for g in second if g is not None]
        return program.graph([*results, *first])


def _fed(graph: pg.Graph, sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes.values()))
    arrays = []
    for type in (type_at(t, sizes) for t in graph.input_types):
        if type.dtype.kind == "f":
            arrays.append(np.asarray(rng.uniform(0.2, 0.9, type.shape), type.dtype))
        else:
            arrays.append(rng.integers(0, 2, type.shape).astype(type.dtype))
    return arrays


def _functions(graph: pg.Graph) -> tuple[pg.Kernel, Callable[..., Any]]:
    """The generic kernel, and the function of a saved file."""
    kernel, space = generic(graph), {}
    exec(standalone_source([optimize_graph(graph)]), space)
    return kernel, space[graph.name]


class _Code:
    """The code of a graph for all sizes."""

    def __init__(self, graph: pg.Graph) -> None:
        self.graph = graph
        self.kernel, self.saved = _functions(graph)
        self.sized = pg.compile(graph, style="readable")

    def agrees(self, sizes: dict[str, int], arrays: Sequence[np.ndarray] | None = None) -> None:
        """It gives what the graph at these sizes does, or refuses them."""
        _agrees(self, _fed(self.graph, sizes) if arrays is None else arrays, sizes)


def _agrees(code: _Code, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> None:
    graph, kernel, saved = code.graph, code.kernel, code.saved
    try:
        code.sized(*arrays)
    except pg.FeedError as refused:
        with pytest.raises(ValueError, match=f"^{re.escape(refused.message)}$"):
            saved(*arrays)
        return
    except pg.RunError:
        with pytest.raises(IndexError):
            pg.interpret(transforms.instantiate(graph, sizes), *arrays)
        return
    wanted = pg.interpret(transforms.instantiate(graph, sizes), *arrays)
    made = saved(*arrays)
    made = made if isinstance(made, tuple) else (made,)
    own = [*arrays]
    for got, other, value in zip(kernel(*arrays), made, wanted, strict=True):
        assert got.dtype == other.dtype == value.dtype
        assert got.shape == other.shape == value.shape
        wide = value.dtype.kind == "f"
        exact = 1e-11 if value.dtype == np.float64 else 1e-2 if value.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(
            got.astype(float) if wide else got, value, rtol=exact, atol=exact
        )
        np.testing.assert_array_equal(other, got)
        assert other.flags.writeable
        assert not any(np.shares_memory(other, a) for a in own)
        own.append(other)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_derivatives_at_each_size(name: str) -> None:
    names = list(_built(name).parameters)
    code = _Code(_built(name))
    for n in SIZES:
        code.agrees({"N": n}, arrays_for(names, n))


@pytest.mark.parametrize("name", MORE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_two_sizes_and_loops_at_each_pair(name: str) -> None:
    graph = _graph(name)
    code = _Code(graph)
    for n, m in ((0, 1), (1, 0), (1, 1), (2, 7), (7, 2), (5, 5)):
        code.agrees({k: v for k, v in {"N": n, "M": m}.items() if k in graph.sizes})


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_primitives_at_each_size(name: str) -> None:
    graph = pg.parse(TEXTS[name])
    code = _Code(graph)
    for n in SIZES:
        code.agrees({size: n + k for k, size in enumerate(graph.sizes)})


def test_every_card_is_among_these() -> None:
    graphs = [_built(name) for name in FUNCTIONS]
    graphs += [pg.parse(text) for text in TEXTS.values()]
    graphs += [_graph(name) for name in MORE]
    seen: set[Op] = set()
    for graph in graphs:
        seen.update(e.op for e in (*graph.body, *optimize_graph(graph).body))
    assert [op.name for op in CARDS if op not in seen and op.name != "constant"] == []


# What it says.


def _centred(x: Any, y: Any) -> Any:
    n = x.shape[0]
    centred = x - pg.sum(x, 0) / n
    steps = centred[1:] - centred[:-1]
    return pg.sum(steps * steps) / (2 * n - 1), pg.broadcast_to(y[:2], (n, 2))


def test_the_source_is_what_a_person_would_write() -> None:
    kernel = pg.compile(pg.trace(_centred, pg.spec(("N", 3)), pg.spec(("M",))))
    lines = [x for x in kernel.source.splitlines() if not x.lstrip().startswith("#")]
    assert [x.strip() for x in lines[lines.index("    n = x.shape[0]") :]] == [
        "n = x.shape[0]",
        "centred = x - np.sum(x, axis=0) / n",
        "steps = centred[1:] - centred[:-1]",
        "v0 = np.sum(steps * steps) / (2 * n - 1)",
        "v1 = y[:2]",
        "return v0, np.broadcast_to(v1, (n, 2))",
    ]
    assert "x: float64, shape (n, 3)" in kernel.source


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (lambda x, n: x[: n // 2], "x[: n // 2]"),
        (lambda x, n: x[1 : n - 1], "x[1:-1]"),
        (lambda x, n: x[n // 2 :], "x[n // 2 :]"),
        (lambda x, n: x[n // 2 : n - 1], "x[n // 2 : -1]"),
        (lambda x, n: x[:n:2], "x[::2]"),
        (lambda x, n: x[::-1], "x[::-1]"),
        (lambda x, n: x.reshape(-1, 2), ".reshape(-1, 2)"),
        (lambda x, n: pg.reshape(x, (n // 2, n - n // 2, 1))[:1], "x.reshape(n // 2,"),
        (
            lambda x, n: pg.broadcast_to(x, (2 * n + 1, n)),
            "np.broadcast_to(x * 3.0, (2 * n + 1, n))",
        ),
        (lambda x, n: pg.pad(x, ((0, n),)), "np.pad(x, ((0, n),))"),
        (lambda x, n: pg.arange(1, n) * 1.0, "np.arange(n - 1)"),
        (lambda x, n: x * (n % 3), "x * (n % 3)"),
        (lambda x, n: x * (2 - n), "x * (2 - n)"),
        (lambda x, n: x * (n * n), "x * n**2"),
        (lambda x, n: pg.zeros(n.max(4)) + pg.sum(x), "(max(4, n),)"),
    ],
)
def test_extents_are_written_as_formatters_do(part: Any, text: str) -> None:
    graph = pg.trace(lambda x: part(x, x.shape[0]) * 3.0, pg.spec(("N",)))
    assert text in pg.compile(graph).source


def test_variables_of_sizes_take_no_name_from_others() -> None:
    with pg.Program() as program:
        n, x = pg.data("n", ("N",)), pg.data("x", ("len", "np", "_"))
        k = pg.zeros((pg.dim("N"), pg.dim("len"), pg.dim("np"), pg.dim("_"))) + pg.sum(n)
        k = pg.reshape(k + x, (-1,))
        k.name = "len_size_2"
        graph = program.graph([k * k])
    kernel, saved = _functions(graph)
    assert "N = n.shape[0]" in kernel.source
    arrays = [np.ones(2), np.ones((1, 2, 3))]
    np.testing.assert_array_equal(kernel(*arrays)[0], saved(*arrays))
    assert kernel(*arrays)[0].shape == (12,)


def test_sizes_are_found_from_expressions() -> None:
    with pg.Program() as program:
        x = pg.data("x", ("2*N+1",))
        pg.data("y", ("M+N",))
        graph = program.graph([pg.zeros((pg.dim("N"), pg.dim("M"))) + x[0]])
    graph = pg.Graph([v.value for v in program.inputs.values()], graph.body, graph.outputs, "f")
    kernel, saved = _functions(graph)
    assert "n = (x.shape[0] - 1) // 2" in kernel.source
    assert "m = y.shape[0] - n" in kernel.source
    assert saved(np.ones(5), np.ones(6)).shape == kernel(np.ones(5), np.ones(6))[0].shape == (2, 4)
    for arrays in ((np.ones(4), np.ones(6)), (np.ones(9), np.ones(3))):
        with pytest.raises(pg.FeedError) as refused:
            pg.compile(graph)(*arrays)
        with pytest.raises(ValueError, match=re.escape(refused.value.message)):
            saved(*arrays)


def test_long_programs_hand_sizes_from_function_to_function() -> None:
    def chain(x: Any) -> Any:
        n = x.shape[0]
        y = x
        for i in range(2100):
            y = pg.sin(y) + x[i % 3]
        return y * n, pg.zeros((n, 2)) + y[0]

    graph = pg.trace(chain, pg.spec(("N",)))
    kernel, saved = _functions(graph)
    assert "def part_2" in kernel.source
    for n in (3, 8):
        x = np.linspace(0.0, 1.0, n)
        for got, made, wanted in zip(
            kernel(x), saved(x), pg.compile(graph, new_sizes="compile")(x), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
            np.testing.assert_array_equal(got, made)


def test_containers_are_taken_apart_for_their_sizes(tmp_path: Path) -> None:
    def function(d: Any) -> Any:
        n = d["x"].shape[0]
        return {"z": pg.zeros((n, 2)) + pg.sum(d["y"][0])}

    kernel = pg.compile(pg.trace(function, {"x": pg.spec(("N",)), "y": [pg.spec((2,))]}))
    fed = {"x": np.zeros(3), "y": [np.ones(2)]}
    kernel.save(tmp_path / "file.py")
    space: dict[str, Any] = {}
    exec((tmp_path / "file.py").read_text(), space)
    for found in (kernel(fed), kernel(fed), space["function"](fed)):
        np.testing.assert_array_equal(found["z"], np.full((3, 2), 2.0))


def test_one_saved_file_is_for_all_sizes_and_needs_numpy_only(tmp_path: Path) -> None:
    def gradient(x: Any, w: Any) -> Any:
        loss = pg.mean(pg.softmax(x.reshape(-1, 3) @ w, 1) ** 2)
        return loss, pg.grad(loss, w)

    kernel = pg.compile(pg.trace(gradient, pg.spec(("N",)), pg.spec((3, 4))))
    other = pg.compile(pg.trace(_centred, pg.spec(("N", 3)), pg.spec(("M",))))
    path = tmp_path / "saved.py"
    kernel.save(path, other)
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 4))
    xs = [rng.normal(size=n) for n in (3, 6, 33, 7)]
    np.savez(tmp_path / "in.npz", w, *xs)
    code = (
        "import sys\nsys.modules['primgraph'] = None\nsys.path.insert(0, '.')\n"
        "import numpy as np\nfrom saved import gradient\n"
        "w, *xs = np.load('in.npz').values()\n"
        "made = [r for x in xs[:3] for r in gradient(x, w)]\nnp.savez('out.npz', *made)\n"
        "try:\n    gradient(xs[3], w)\nexcept ValueError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", code],
        check=True, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    found = list(np.load(tmp_path / "out.npz").values())
    wanted = [r for x in xs[:3] for r in kernel(x, w)]
    for got, value in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-15)
    with pytest.raises(pg.FeedError) as refused:
        kernel(xs[3], w)
    assert run.stdout.strip() == refused.value.message
    assert "N % 3 == 0" in run.stdout
    assert "assumed by test_generic_code.py" in run.stdout


@RUFF
def test_saved_files_are_as_a_formatter_would_have_them(tmp_path: Path) -> None:
    for i, name in enumerate(list(FUNCTIONS)[::3]):
        pg.compile(_built(name)).save(tmp_path / f"saved_{i}.py")
    for name in MORE:
        pg.compile(_graph(name)).save(tmp_path / f"{name.replace(' ', '_')}.py")
    for arguments in (("format", "--check", "--diff"), ("check", "--select", "E4,E7,E9,F")):
        found = subprocess.run(
            [sys.executable, "-m", "ruff", arguments[0], "--isolated", *arguments[1:], "."],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert found.returncode == 0, found.stdout[:3000] + found.stderr


def test_each_literal_of_a_message_has_the_quotes_with_fewer_escapes(tmp_path: Path) -> None:
    pg.compile(_graph("from the end")).save(tmp_path / "saved.py")
    lines = [line.strip() for line in (tmp_path / "saved.py").read_text().splitlines()]
    start = lines.index("raise ValueError(")
    assert lines[start + 1] == (
        r'''f"size M = {m} of input 'v' does not satisfy \"M >= 1\", assumed by "'''
    )
    # The second literal holds the name of the function in double quotes, the third no quotes.
    assert [line[:2] for line in lines[start + 2 : start + 4]] == ["f'", 'f"']
    assert lines[start + 4] == ")"


# When it runs.


def _kernels(kernel: Any) -> tuple[int, bool]:
    """For how many sizes there are kernels, and whether there is code for all."""
    return len(kernel._kernels), kernel._kernels._whole is not None


def test_new_sizes_take_the_code_for_all_and_the_second_time_a_kernel_of_their_own() -> None:
    kernel = pg.compile(pg.trace(lambda x: pg.sum(pg.exp(x)), pg.spec(("N",))))
    assert _kernels(kernel) == (0, False)
    kernel(np.ones(3))
    kernel(np.ones(4))
    assert _kernels(kernel) == (0, True)
    kernel(np.ones(3))
    assert _kernels(kernel) == (1, True)


def test_kernels_are_made_for_sizes_that_come_often() -> None:
    kernel = pg.compile(pg.trace(lambda x: pg.sum(pg.exp(x)), pg.spec(("N",))))
    for _ in range(3):
        for n in range(40):
            kernel(np.ones(n))
    assert _kernels(kernel) == (0, True)
    # What has computed so much that a kernel would have paid gets one.
    for _ in range(3):
        kernel(np.ones(2_000_000))
    assert _kernels(kernel) == (1, True)
    other = pg.compile(kernel.graph)
    for _ in range(2):
        for n in range(10):
            other(np.ones(n))
    assert _kernels(other) == (10, True)


def test_code_for_all_sizes_may_be_all_there_is_or_be_left_out() -> None:
    graph = pg.trace(lambda x: pg.sum(pg.exp(x)), pg.spec(("N",)))
    readable = pg.compile(graph, style="readable")
    planned = pg.compile(graph, new_sizes="compile")
    for _ in range(3):
        assert readable(np.zeros(3)) == planned(np.zeros(3)) == 3.0
    assert _kernels(readable) == (0, True)
    assert _kernels(planned) == (1, False)
    assert readable.at(N=5).style == "readable"
    with pytest.raises(pg.ArgumentError, match="new_sizes"):
        pg.compile(graph, new_sizes="later")
    with pytest.raises(pg.ArgumentError, match="new_sizes"):
        pg.Executor(new_sizes="")


def _step() -> tuple[pg.Program, Any, Any]:
    with pg.Program() as program:
        x, t = pg.data("x", ("N", 3)), pg.data("t", ("N", 2))
        y = pg.tanh(pg.nn.Linear(3, 2)(x))
        loss = pg.mse_loss(y, t)
        pg.optimizer.Adam(0.1).minimize(loss)
    return program, loss, y


def test_the_same_runs_in_the_same_order_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    feeds = []
    for n in rng.integers(0, 12, 60):
        feeds.append({"x": rng.normal(size=(n, 3)), "t": rng.normal(size=(n, 2))})
    program, loss, y = _step()
    first = program.state_dict()

    def trained(executor: pg.Executor) -> list[np.ndarray]:
        scope = pg.Scope()
        scope.put(first)
        executor.scope = scope
        other = program.clone()
        wanted = [loss.name, y.name] if loss.name else [y.name]
        found = [executor.run(other, f, wanted) for f in feeds]
        return [*(a for row in found for a in row), *scope.snapshot().values()]

    for once, again in zip(trained(pg.Executor()), trained(pg.Executor()), strict=True):
        np.testing.assert_array_equal(once, again)
    for once, known in zip(
        trained(pg.Executor()), trained(pg.Executor(new_sizes="compile")), strict=True
    ):
        np.testing.assert_allclose(once, known, rtol=1e-9, atol=1e-12)


def test_results_go_where_they_are_wanted() -> None:
    graph = pg.trace(lambda x: [x * 2.0, pg.sum(x)], pg.spec(("N",)))
    for kernel in (pg.compile(graph), pg.compile(graph, style="readable")):
        for n in (3, 4, 3, 3):
            out = [np.empty(n), None]
            found = kernel(np.ones(n), out=out)
            assert found[0] is out[0]
            assert found[0].tolist() == [2.0] * n
            assert kernel(np.ones(n), borrow=True)[1] == n
        with pytest.raises(pg.ArgumentError, match="result 0 needs a writable array"):
            kernel(np.ones(5), out=[np.empty(4), None])
    donating = pg.compile(graph, donated={0: 0})
    for n in (3, 4, 3):
        x = np.ones(n)
        assert donating(x)[0] is x
        assert x.tolist() == [2.0] * n


def test_feeds_that_do_not_fit_are_refused_in_the_same_words() -> None:
    graph = pg.trace(lambda x, y: x + y[0], pg.spec(("N", 3)), pg.spec((2,), "int64"))
    new, known = pg.compile(graph), pg.compile(graph, new_sizes="compile")
    for arrays in (
        (np.ones((2, 4)), [1, 2]), (np.ones((2, 3)), [0.5, 1]), (np.ones(3), [1, 2]),
        (np.ones((2, 3), complex), [1, 2]), (np.ones((2, 3)), [1, 2, 3]), ("no", [1, 2]),
    ):  # fmt: skip
        messages = []
        for kernel in (new, known):
            with pytest.raises(pg.FeedError) as caught:
                kernel(*arrays)
            messages.append(caught.value.message)
        assert messages[0] == messages[1]
    ints = np.ones((2, 3), np.int32)
    np.testing.assert_array_equal(new(ints, [1, 2]), known(ints[::-1], (1, 2)))


def test_a_run_that_fails_tells_the_line() -> None:
    graph = pg.trace(lambda x, i: pg.take(x, i) * 2.0, pg.spec(("N",)), pg.spec((), "int64"))
    with pytest.raises(pg.RunError, match=r"gather.* failed") as caught:
        pg.compile(graph)(np.ones(3), 5)
    assert "test_generic_code.py" in str(caught.value)


def test_programs_of_paddle_and_executors_take_it() -> None:
    program, loss, y = _step()
    executor = pg.Executor()
    rng = np.random.default_rng(1)
    for n in (4, 2, 4, 3, 1, 0):
        feed = {"x": rng.normal(size=(n, 3)), "t": rng.normal(size=(n, 2))}
        found = executor.run(program, feed, [y, loss])
        assert found[0].shape == (n, 2)
    test = program.clone(for_test=True)
    (found,) = executor.run(test, {"x": np.ones((5, 3))}, [y.name], debug="nan")
    out = np.empty((5, 2))
    assert executor.run(test, {"x": np.ones((5, 3))}, [y.name], out=[out])[0] is out
    np.testing.assert_allclose(found, out, rtol=1e-12)


def test_many_threads_meet_new_sizes() -> None:
    kernel = pg.compile(pg.trace(lambda x: pg.sum(pg.exp(x)) / x.shape[0], pg.spec(("N",))))
    faults: list[Any] = []

    def work(first: int) -> None:
        for i in range(60):
            n = 1 + (first * 7 + i * i) % 23
            try:
                if not np.isclose(kernel(np.zeros(n)), 1.0):
                    faults.append(n)
            except Exception as error:
                faults.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
