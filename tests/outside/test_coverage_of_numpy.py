"""The count of functions that projects use: whose they are by imports, and what stands here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

FILES = {
    "one.py": "import numpy as np\nnp.sin(1); np.sin(2); np.linalg.norm(x); np.pi; np.float64(1)\n",
    "two.py": "from numpy import linalg as la\nfrom scipy.special import pbdv\n"
    "la.norm(x); pbdv(1, x); other.sin(x)\n",
    "ten.py": "import jax.numpy as jn\nfrom scipy.special import erf, airy\njn.r_[1]; jn.eye(2)\n",
    "four.py": "import numpy\nnumpy.random.normal(); numpy.savetxt('x', [])\n",
    "none.py": "import scipy.special\nscipy.special.erf(1)\n",
    "broken.py": "import numpy as np\nnp.sin(\n",
    "test_it.py": "import numpy as np\nfrom scipy.special import pbdv\npbdv(1, np.x)\n",
}


def counted(folder: Path, *options: str) -> list[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, str(BENCHMARKS / "coverage_of_numpy.py"), str(folder), *options]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_uses_are_counted_by_file_and_function(tmp_path: Path) -> None:
    lines = counted(tmp_path)
    # sin, norm; norm, pbdv; erf, airy, r_, eye; normal, savetxt.
    assert lines[-5].endswith("| 4 | 9 | 6 | 1 | 2 | 1 | 77.8 % |")
    assert lines[-3] == "lacking, with uses: scipy.special.airy 1, scipy.special.pbdv 1"
    assert lines[-1] == "apart, with uses: numpy.savetxt 1"


def test_tests_of_projects_are_counted_where_they_are_asked_for(tmp_path: Path) -> None:
    assert counted(tmp_path, "--tests", "--lacking", "1")[-3].endswith("scipy.special.pbdv 2")
