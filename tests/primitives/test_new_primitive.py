"""A primitive more takes a block, a card and a row of samples; its operator a line and a name."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_packaging import copied, in_checkout, python

BLOCK = '''

_COEFFICIENTS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)


def _digamma(x: np.ndarray[Any, Any]) -> Any:
    """Twelve steps of `digamma(x) = digamma(x + 1) - 1 / x`, and an asymptotic series.

    DLMF 5.5.2 and 5.11.2.
    """
    wide = x.astype(np.float64)
    y = wide + 12.0
    series = sum(c / y ** (2 * k + 2) for k, c in enumerate(_COEFFICIENTS))
    found = np.log(y) - 0.5 / y - series - sum(1.0 / (wide + k) for k in range(12))
    return np.where(wide >= 0.0, found, np.nan).astype(x.dtype)


def _trigamma(x: Value) -> Any:
    """The derivative: steps and series, term by term."""
    y = x + 12.0
    total = 1.0 / y + 0.5 / (y * y)
    for k, c in enumerate(_COEFFICIENTS):
        total = total + 2.0 * (k + 1) * c * integer_pow(y, n=-2 * k - 3)
    for k in range(12):
        total = total + integer_pow(x + float(k), n=-2)
    return total


digamma = elementwise(
    "digamma", _digamma, singular=True, jvp=lambda z, x, d: d * _trigamma(x)
)
__all__ += ["digamma"]
'''

CARD = """

def _digamma(args: Sequence[Text], step: Step) -> Text:
    x, dtype = args[0].operand_code(ATOM), f"np.{step.results[0].dtype.name}"
    y = f"({x}.astype(np.float64) + 12.0)"
    terms = zip(e._COEFFICIENTS, range(2, 14, 2), strict=True)
    series = " + ".join(f"{c!r} / {y} ** {n}" for c, n in terms)
    steps = " + ".join(f"1.0 / ({x}.astype(np.float64) + {k}.0)" for k in range(12))
    found = f"np.log({y}) - 0.5 / {y} - ({series}) - ({steps})"
    return Text(f"np.where({x} >= 0.0, {found}, np.nan).astype({dtype})")


CARDS[e.digamma] = replace(
    ufunc_card("digamma", per_element(40.0, 40.0), None, ComplexStep(None, False, _is_positive)),
    read=_digamma,
    write=lambda to: [f"{to.out}[...] = {_digamma([Text(a) for a in to.args], to.step).code}"],
    inline=False,
    broadcasts=(),
    in_place=(),
    ufunc="",
    complex_step=None,
)
"""

ROW = """
ROWS["digamma"] = elementwise(
    domain=POSITIVE,
    reference=np.vectorize(lambda x: float(mpmath.digamma(float(x))), otypes=[float]),
    analytic=DIFFERENCES,
)
"""

OPERATOR = """
digamma = _function(
    "digamma", p.digamma, "Derivative of the logarithm of the gamma function.", "1.0 -> -0.5772"
)
"""

USE = """
import numpy as np, primgraph as pg
graph = pg.trace(lambda x: pg.grad(pg.sum(pg.digamma(x) ** 2), x), pg.spec(3))
x = np.array([0.5, 1.0, 4.0])
kernel = pg.compile(graph)
print(kernel(x).round(6).tolist(), np.allclose(kernel(x), pg.interpret(graph, x)[0], rtol=1e-13))
pg.check_grads(lambda x: pg.digamma(x), [x], order=3)
kernel.save("psi.py")
pg.check_finite(lambda x: pg.digamma(x), x)
try:
    pg.check_finite(lambda x: pg.digamma(x), x - 1.0)
except pg.NumericalError as error:
    print(error.message)
"""


def add(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, with nothing but these added."""
    root = copied(tmp_path_factory.mktemp("house") / "copy")
    add(root / "primgraph" / "primitives" / "elementwise" / "functions.py", BLOCK)
    add(root / "codegen" / "ops" / "elementwise" / "functions.py", CARD)
    add(root / "tests" / "primitives" / "samples" / "elementwise.py", ROW)
    operators = root / "primgraph" / "operators" / "elementwise" / "elementary.py"
    add(operators, OPERATOR)
    table = root / "primgraph" / "operators" / "name_table.py"
    text = table.read_text(encoding="utf-8")
    assert text.count('"rsqrt sigmoid"') == 1
    table.write_text(text.replace('"rsqrt sigmoid"', '"digamma rsqrt sigmoid"'), encoding="utf-8")
    return root


@in_checkout
def test_a_new_primitive_is_public_differentiable_compiled_and_looked_at(house: Path) -> None:
    done = python(USE, house, PYTHONPATH=str(house))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.endswith("True")
    assert second == "digamma makes NaN at [0] of -0.5"
    saved = "import psi, numpy, sys; print(psi.f(numpy.ones(3)), 'primgraph' in sys.modules)"
    name = (house / "psi.py").read_text(encoding="utf-8").rpartition("def ")[2].partition("(")[0]
    done = python(saved.replace("psi.f", f"psi.{name}"), house, PYTHONPATH="")
    assert done.stdout.rstrip().endswith("False"), done.stderr


@in_checkout
@pytest.mark.dense
def test_tests_of_primitives_find_a_new_one_by_themselves(house: Path) -> None:
    files = ("primitives/test_primitives", "codegen/test_cards", "codegen/test_codegen")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["-k", "digamma or card", "--basetemp", str(house / "temporary")]
        + [f"tests/{name}.py" for name in files],
        cwd=house,
        env={"PYTHONPATH": str(house), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:]
