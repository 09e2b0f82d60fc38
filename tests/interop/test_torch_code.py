"""Source for torch: its text, its values beside the interpreter, and what torch lacks."""

import pickle

import numpy as np
import pytest
from density import starts
from library_code import assert_program, assert_workloads, needs_benchmarks
from random_programs import random_program

import primgraph as pg

try:
    import torch
except ImportError:
    torch = None

with_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


@with_torch
@needs_benchmarks
def test_workloads_in_torch(monkeypatch):
    assert_workloads(monkeypatch, "torch")


@with_torch
@pytest.mark.parametrize("start", starts(50_000, 240, 4, dense=8))
def test_random_programs_in_torch(start):
    for seed in range(start, start + 4):
        assert_program(random_program(seed), "torch", "torch lacks ")
