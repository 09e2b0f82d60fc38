"""Distributions of one number, by what is theirs on the standard scale."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from primgraph.errors import ArgumentError, unknown_name
from primgraph.operators.arithmetic import abs, add, equal, negative, subtract
from primgraph.operators.call import of_namespace
from primgraph.operators.elementary import exp, expm1, log, log1p
from primgraph.operators.logic import less, logical_and, logical_or, where
from primgraph.operators.promotion import converted, fractional, lift
from primgraph.operators.rounding import floor
from primgraph.operators.variable import Variable, handles

Rule = Callable[..., Any]
"""A function of a variable on the standard scale, and of the parameters of shape."""
