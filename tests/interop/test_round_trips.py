"""Random programs in other libraries and back: values and derivatives are equal."""

from collections import Counter

import numpy as np
import pytest
from random_programs import random_program

LIBRARIES = {"jax": "jax", "onnx": "onnx", "stablehlo": "jax", "torch": "torch"}


def check(way, seeds):
    pytest.importorskip(LIBRARIES[way], reason=f"{LIBRARIES[way]} is not installed")
    round_trips = pytest.importorskip("round_trips")
    left = Counter()
    with np.errstate(all="ignore"):
        made = sum(
            round_trips.check(round_trips.WAYS[way], random_program(seed), left) for seed in seeds
        )
    assert made > len(seeds)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", LIBRARIES)
def test_random_programs_make_round_trips(way):
    check(way, range(10))


@pytest.mark.dense
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", LIBRARIES)
def test_many_random_programs_make_round_trips(way):
    check(way, range(10, 310))
