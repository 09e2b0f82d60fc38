"""What holds for every form with `is_batched`: the truth of each sample, or a plain refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from program_batched import BatchedProgram, Step
from program_checks import check_kernel_of_slopes
from program_derivatives import demand
from program_draft import Choices

import primgraph as pg
from primgraph.ir.interpret import interpret
from primgraph.transforms import lower

Function = Callable[[pg.Variable], pg.Variable]
Form = Callable[..., pg.Variable]

# How often each of the more expensive checks is made.
_SECOND_ORDER = 0.4
_KERNEL = 0.2

_ROUNDING = 1e-9

# Forms of a function of samples, given as one, or as what it has built.
_FIRST: dict[str, Form] = {
    "divergence": lambda f, x, **more: pg.divergence(f(x), x, True, **more),
    "batched_jacobian": lambda f, x, **more: pg.batched_jacobian(f(x), x, **more),
    "Jacobian of a function": lambda f, x, **more: pg.Jacobian(f, x, True, **more)[:],
    "rows of a Jacobian": lambda f, x, **more: pg.Jacobian(f(x), x, True, **more)[:, -1],
    "columns of a Jacobian": lambda f, x, **more: pg.Jacobian(f(x), x, True, **more)[..., 0],
    "one sample of a Jacobian": lambda f, x, **more: pg.Jacobian(f, x, True, **more)[-1],
}
_SECOND: dict[str, Form] = {
    "laplacian": lambda f, x, **more: pg.laplacian(f(x), x, True, **more),
    "hessian_diagonal": lambda f, x, **more: pg.hessian_diagonal(f(x), x, True, **more),
    "Hessian of a function": lambda f, x, **more: pg.Hessian(f, x, True, **more)[:],
    "rows of a Hessian": lambda f, x, **more: pg.Hessian(f(x), x, True, **more)[:, 0],
}

# What part of the true matrices, one a sample, each of them is.
_PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "divergence": lambda m: np.trace(m, axis1=1, axis2=2),
    "laplacian": lambda m: np.trace(m, axis1=1, axis2=2),
    "hessian_diagonal": lambda m: np.diagonal(m, axis1=1, axis2=2),
    "rows of a Jacobian": lambda m: m[:, -1],
    "columns of a Jacobian": lambda m: m[..., 0],
    "one sample of a Jacobian": lambda m: m[-1],
    "rows of a Hessian": lambda m: m[:, 0],
}


def check_batched(program: BatchedProgram, seen: Counter[str] | None = None) -> None:
    """Each form gives what unbatched ones give for single samples, or says that samples mix."""
    seen = Counter() if seen is None else seen
    draw = program.draw(80)
    weights = np.cos(np.arange(program.shape[1]))
    keepdims = draw.chance(0.3)

    def energy(y: pg.Variable) -> pg.Variable:
        result: pg.Variable = pg.sum(y * weights, axis=1, keepdims=keepdims)
        return result

    whole = _jacobian(program)
    n = program.shape[0]
    own = np.eye(n, dtype=bool)[:, None, :, None]
    mixed = bool(np.any(np.where(own, 0, np.abs(whole)) > _ROUNDING))
    demand(program.mixing or not mixed, f"samples meet in steps {program.names}")
    forms = {name: (form, lambda y: y) for name, form in _FIRST.items()}
    matrices = {name: whole[np.arange(n), :, np.arange(n), :] for name in forms}
    if draw.chance(_SECOND_ORDER):
        forms |= {name: (form, energy) for name, form in _SECOND.items()}
        matrices |= dict.fromkeys(_SECOND, None if mixed else _hessians(program, energy))
    if mixed:
        _check_refusals(program, forms, seen)
    else:
        _check_values(program, forms, matrices, draw, seen)


def _jacobian(program: BatchedProgram) -> np.ndarray:
    """All slopes of all samples by all samples, of an unbatched form."""

    def slopes(x: pg.Variable, *others: pg.Variable) -> pg.Variable:
        result: pg.Variable = pg.jacobian(program.samples(x, *others), x)
        return result

    feeds = program.feeds()
    return interpret(lower(pg.trace(slopes, *[pg.spec(a.shape) for a in feeds])), *feeds)[0]


def _hessians(program: BatchedProgram, energy: Function) -> np.ndarray:
    """For each sample the Hessian of its energy, of an unbatched form."""

    def parts(x: pg.Variable, *others: pg.Variable) -> list[pg.Variable]:
        each = energy(program.samples(x, *others))
        return [pg.hessian(pg.sum(each[b]), x)[b, :, b, :] for b in range(x.shape[0])]

    feeds = program.feeds()
    return np.stack(interpret(lower(pg.trace(parts, *[pg.spec(a.shape) for a in feeds])), *feeds))


def _check_values(
    program: BatchedProgram,
    forms: dict[str, tuple[Form, Function]],
    matrices: dict[str, np.ndarray],
    draw: Choices,
    seen: Counter[str],
) -> None:
    """Samples are apart: the forms have them all right."""
    refused: list[str] = []

    def asked(x: pg.Variable, *others: pg.Variable) -> list[pg.Variable]:
        found = []
        for name, (form, end) in forms.items():
            function = _function(program, end, others)
            try:
                found.append(form(function, x))
            except pg.MixedSamplesError as error:
                demand(program.mixing, f"{name} refuses samples that are apart: {error}")
                refused.append(name)
        return [x, *found]

    feeds = program.feeds()
    graph = lower(pg.trace(asked, *[pg.spec(a.shape) for a in feeds]))
    found = interpret(graph, *feeds)
    for name, array in zip([n for n in forms if n not in refused], found[1:], strict=True):
        wanted = _PARTS.get(name, lambda m: m)(matrices[name])
        size = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0))
        given, bound = np.reshape(array, wanted.shape), _ROUNDING * (1 + size)
        close = np.isclose(given, wanted, rtol=0, atol=bound, equal_nan=True)
        demand(np.all(close), f"{name}:\n{array!r}, not\n{wanted!r}")
        seen[f"batched: {name}"] += 1
    seen["batched: refused, but apart there"] += len(refused)
    if draw.chance(_KERNEL):
        check_kernel_of_slopes("batched forms", graph, feeds, found, draw)
        seen["batched: kernels"] += 1


def _check_refusals(
    program: BatchedProgram, forms: dict[str, tuple[Form, Function]], seen: Counter[str]
) -> None:
    """Samples meet: each form names the equation and its line, and takes `check=False`."""

    def asked(x: pg.Variable, *others: pg.Variable) -> list[pg.Variable]:
        found = []
        for name, (form, end) in forms.items():
            function = _function(program, end, others)
            try:
                form(function, x)
            except pg.MixedSamplesError as error:
                _demand_told(name, str(error), program)
                seen["batched: samples that meet are refused"] += 1
            else:
                demand(False, f"{name} takes samples that meet")
            found.append(form(function, x, check=False))
        return found

    feeds = program.feeds()
    found = interpret(lower(pg.trace(asked, *[pg.spec(a.shape) for a in feeds])), *feeds)
    demand(all(np.all(np.isfinite(a)) for a in found), "not finite with check=False")


def _function(program: BatchedProgram, end: Function, others: Any) -> Function:
    return lambda x: end(program.samples(x, *others))


def _demand_told(name: str, message: str, program: BatchedProgram) -> None:
    """The error has the operation, the line of the step at which samples meet, and the way out."""
    step = program.mixing
    assert step is not None
    lines = [f"program_batched.py:{i}  " for i in _lines(step)]
    told = "samples may mix in " in message and "check=False" in message
    demand(told and any(line in message for line in lines), f"{name}, of {lines}: {message}")


def _lines(step: Step) -> list[int]:
    code = step.__code__
    return sorted({line for _, _, line in code.co_lines() if line is not None})
