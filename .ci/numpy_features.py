"""Print what NPY_DISABLE_CPU_FEATURES has to be for NumPy to run as on a smaller processor.

    python .ci/numpy_features.py avx2|baseline

`avx2` leaves loops for AVX2, and `baseline` those that run on every processor. Nothing is printed
where this processor is no larger.
"""

import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

# NumPy 2.4 has levels of x86-64 in the place of single features.
BEYOND_AVX2 = ("AVX512", "X86_V4", "AVX10")


def disabled(level: str) -> list[str]:
    """Return the features to leave out, of those that NumPy has loops for and finds here."""
    found = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if level == "baseline":
        return found
    return [name for name in found if name.startswith(BEYOND_AVX2)]


if __name__ == "__main__":
    (level,) = sys.argv[1:]
    if level not in ("avx2", "baseline"):
        sys.exit(f"{level!r} is neither avx2 nor baseline")
    print(*disabled(level))
