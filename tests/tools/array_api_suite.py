"""The tests of the array API standard, on `primgraph.array_api`.

    python tests/tools/array_api_suite.py CHECKOUT [--max-examples N] [TEST ...]

runs those of a checkout of https://github.com/data-apis/array-api-tests, with its submodule
`array-api`, and the packages in its requirements.txt. A test is named as pytest names it; without
any all are run. `array_api_exceptions.txt` has those that do not pass, with reasons: they count as
expected failures.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

EXCEPTIONS = Path(__file__).parent / "array_api_exceptions.txt"


def main() -> int:
    """Run the tests; what pytest returns."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--max-examples", type=int, default=10)
    parser.add_argument("tests", nargs="*", default=["array_api_tests"])
    given = parser.parse_intermixed_args()
    root = str(Path(__file__).parents[2])
    known = {
        "ARRAY_API_TESTS_MODULE": "primgraph.array_api",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
    }
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--disable-deadline"),
        *("--hypothesis-derandomize", "--max-examples", str(given.max_examples)),
        *("-c", "pytest.ini", "--rootdir", ".", f"--xfails-file={EXCEPTIONS}", *given.tests),
    ]
    return subprocess.run(command, cwd=given.checkout, env=os.environ | known).returncode


if __name__ == "__main__":
    raise SystemExit(main())
