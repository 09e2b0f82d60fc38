"""
Derivatives of SciPy's rosen as a NumPy file
============================================

Write the derivatives of a published function into a file that needs NumPy alone. The function
is scipy.optimize.rosen (Rosenbrock's; SciPy, BSD licence), traced as it is. The file computes
its value, gradient and Hessian-vector product, in a process without primgraph or SciPy. The
results agree with the derivatives that SciPy's authors wrote by hand.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import scipy
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

import primgraph as pg

FILE = "rosen_derivatives.py"
# Another project's program: nothing but NumPy, and the file.
PROGRAM = """
import sys
sys.path.insert(0, ".")
import numpy as np
from rosen_derivatives import rosen_derivatives

x, p = np.linspace(-1.0, 2.0, 8), np.cos(np.arange(8.0))
value, gradient, product = rosen_derivatives(x, p)
assert not {"primgraph", "scipy"} & set(sys.modules)
np.save("found.npy", np.concatenate([[value], gradient, product]))
"""


def rosen_derivatives(x, p):
    value = rosen(x)
    gradient = pg.grad(value, x)
    return value, gradient, pg.forward_grad(gradient, x, p)


def main():
    graph = pg.trace(rosen_derivatives, pg.spec(8), pg.spec(8), through=[scipy])
    pg.compile(graph).save(FILE)
    print(Path(FILE).read_text())
    subprocess.run([sys.executable, "-I", "-c", PROGRAM], check=True)
    x, p = np.linspace(-1.0, 2.0, 8), np.cos(np.arange(8.0))
    by_hand = [[rosen(x)], rosen_der(x), rosen_hess_prod(x, p)]
    expected = np.concatenate(by_hand)
    error = np.max(np.abs(np.load("found.npy") - expected)) / np.max(np.abs(expected))
    print(
        f"{FILE} runs without primgraph; largest difference from SciPy's derivatives: {error:.1e}"
    )
    assert error < 1e-14


if __name__ == "__main__":
    main()
