"""Samples of every primitive: a row each, in a module for each family of primitives.

The modules have the names of those in `primgraph.primitives`. Rows get more calls, on complex
numbers, from `complex_samples`.
"""

import pkgutil
from dataclasses import replace
from importlib import import_module

import complex_samples

from primgraph.errors import DTypeError, UnsupportedDTypeError
from samples.rows import Call, Refused, Row

ROWS: dict[str, Row] = {}
for _family in sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "rows"):
    ROWS |= import_module(f"{__name__}.{_family}").ROWS

for _name, _calls in complex_samples.CALLS.items():
    _more = [Call(*operands, **params) for operands, params in _calls]
    ROWS[_name] = replace(ROWS[_name], calls=[*ROWS[_name].calls, *_more])
for _name, _calls in complex_samples.REFUSED.items():
    _error = UnsupportedDTypeError if _name in complex_samples.ORDERS else DTypeError
    _more = [Refused(_error, *operands, **params) for operands, params in _calls]
    ROWS[_name] = replace(ROWS[_name], refused=[*ROWS[_name].refused, *_more])
