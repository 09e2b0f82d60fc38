"""Files of programs and their parameters, for inference and to go on training.

A model for inference is one file of `pg.save`, `PREFIX.pdmodel`, and a list of names in
`PREFIX.pdiparams`. `static.save` writes arrays in NumPy's format, without pickle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from primgraph.compat.paddle.core.program import Program, building_program
from primgraph.compat.paddle.static.scopes import current_scope
from primgraph.errors import ArgumentError, LoadError
from primgraph.ir.graph import Value
from primgraph.operators.variable import Variable
from primgraph.program.program import Program as _Program
from primgraph.program.program import program_of
from primgraph.program.save import load as _load
from primgraph.program.save import save as _save


def save_inference_model(
    path_prefix: str | os.PathLike[str],
    feed_vars: Variable | Sequence[Variable],
    fetch_vars: Variable | Sequence[Variable],
    executor: Any,
    *,
    program: Any = None,
    clip_extra: bool = True,
    legacy_format: bool = False,
) -> None:
    """Write the part of a program that computes `fetch_vars` from `feed_vars`, for inference.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [2])
    ...     y = x * 2.0
    ...     paddle.static.save_inference_model("double", [x], [y], paddle.static.Executor())
    >>> exe = paddle.static.Executor()
    >>> program, feeds, fetches = paddle.static.load_inference_model("double", exe)
    >>> exe.run(program, {feeds[0]: np.ones(2, np.float32)}, fetches)
    [array([2., 2.], dtype=float32)]
    """
    feeds, fetches = _variables("feed_vars", feed_vars), _variables("fetch_vars", fetch_vars)
    _write(_inference_part(feeds, fetches), path_prefix, feeds, fetches)


def _inference_part(feed_vars: Any, fetch_vars: Any) -> Program:
    """Return the normalized program of `fetch_vars`, with the values of its parameters."""
    feeds, fetches = _variables("feed_vars", feed_vars), _variables("fetch_vars", fetch_vars)
    source = program_of(fetches[0]) if fetches else building_program()
    made = normalize_program(source, feeds, fetches)
    made.scope = current_scope().storage or source.scope
    return made


def save_training_model(
    path_prefix: str | os.PathLike[str],
    program: Program,
    feeds: Sequence[Variable],
    fetches: Sequence[Variable],
) -> None:
    """Write a whole program with its updates, as `save_inference_model` writes a part."""
    _write(program, path_prefix, feeds, fetches)


def _write(
    made: Any,
    path_prefix: str | os.PathLike[str],
    feeds: Sequence[Variable],
    fetches: Sequence[Variable],
) -> None:
    """Write a program, and the names of its inputs and results."""
    names = {"feeds": [v.name for v in feeds], "fetches": [v.name for v in fetches]}
    prefix = os.fspath(path_prefix)
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    _save(made, f"{prefix}.pdmodel")
    Path(f"{prefix}.pdiparams").write_text(json.dumps(names), encoding="utf-8")


def load_inference_model(
    path_prefix: str | os.PathLike[str], executor: Any, **kwargs: Any
) -> list[Any]:
    """Return a program of `save_inference_model`, the names of its feeds, and its fetches."""
    prefix = os.fspath(path_prefix)
    program = _load(f"{prefix}.pdmodel")
    try:
        names = json.loads(Path(f"{prefix}.pdiparams").read_text(encoding="utf-8"))
        fetches = [program.variable(name) for name in names["fetches"]]
        return [program, list(names["feeds"]), fetches]
    except (ValueError, KeyError, TypeError) as error:
        raise LoadError(f"'{prefix}.pdiparams' is no list of names: {error}") from None


def normalize_program(
    program: Any, feed_vars: Variable | Sequence[Variable], fetch_vars: Any, **kwargs: Any
) -> Program:
    """Return a copy, for inference, of the part of a program that computes `fetch_vars`.

    Raises `ArgumentError` if that part needs other inputs than `feed_vars`.

    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     x = paddle.static.data("x", [2])
    ...     other, y = paddle.exp(x), paddle.tanh(x)
    >>> len(paddle.static.normalize_program(program, x, y).operators())
    1
    """
    feeds, fetches = _variables("feed_vars", feed_vars), _variables("fetch_vars", fetch_vars)
    whole = program.clone(for_test=True)
    targets = [whole.variable(v.name).value for v in fetches]
    kept = _needed(whole, targets)
    given = {v.name for v in feeds}
    lacking = [n for n, v in whole.inputs.items() if v.value in kept and n not in given]
    if lacking:
        raise ArgumentError(f"feed_vars lacks {', '.join(map(repr, lacking))}")
    made = Program(program.name)
    moved: dict[Value, Value] = {}
    for value in whole.builder.inputs:
        if value in kept or value.hint in given:
            moved[value] = made.builder.input(value.type, value.hint)
            if value in whole.states:
                made.states[moved[value]] = whole.states[value]
    for eqn in whole.builder.body:
        if not kept.isdisjoint(eqn.outputs):
            results = made.builder.copy_distinct(eqn, tuple(moved[v] for v in eqn.inputs))
            moved.update(zip(eqn.outputs, results, strict=True))
    for old, new in zip(fetches, targets, strict=True):
        if moved[new].hint != old.name:
            made.builder.rename(moved[new], old.name)
    return made


def _needed(program: _Program, targets: Sequence[Value]) -> set[Value]:
    """Return the values from which targets are computed, and the targets."""
    kept = set(targets)
    for eqn in reversed(program.builder.body):
        if not kept.isdisjoint(eqn.outputs):
            kept.update(eqn.inputs)
    return kept


def _variables(name: str, given: Any) -> list[Variable]:
    listed = [given] if isinstance(given, Variable) else list(given)
    for item in listed:
        if not isinstance(item, Variable):
            raise ArgumentError(f"{name} is a list of variables, and {item!r:.60} is none")
    return listed


def serialize_program(feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> bytes:
    """Return the part of a program that computes `fetch_vars`, for inference, as bytes.

    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [2])
    ...     text = paddle.static.serialize_program([x], [paddle.tanh(x)])
    >>> len(paddle.static.deserialize_program(text).operators())
    1
    """
    made = _inference_part(feed_vars, fetch_vars)
    with TemporaryDirectory() as folder:
        path = Path(folder, "program")
        _save(made, path)
        return path.read_bytes()


def deserialize_program(data: bytes) -> Any:
    """Return a program from bytes of `serialize_program`."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "program")
        path.write_bytes(data)
        return _load(path)


def serialize_persistables(feed_vars: Any, fetch_vars: Any, executor: Any, **kwargs: Any) -> bytes:
    """Return the parameters and other states of that part of a program, as bytes.

    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     x = paddle.static.data("x", [2])
    ...     y = x * paddle.create_parameter([2], "float32", name="w")
    ...     values = paddle.static.serialize_persistables([x], [y], paddle.static.Executor())
    >>> exe = paddle.static.Executor()
    >>> paddle.static.deserialize_persistables(program, values, exe) is program
    True
    """
    file = BytesIO()
    arrays: Any = _inference_part(feed_vars, fetch_vars).state_dict()
    np.savez(file, **arrays)
    return file.getvalue()


def deserialize_persistables(program: Any, data: bytes, executor: Any) -> Any:
    """Store what `serialize_persistables` returned as states of a program; return the program."""
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        set_program_state(program, dict(arrays))
    return program


def save_to_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a file.

    >>> paddle.static.save_to_file("content", b"abc")
    >>> paddle.static.load_from_file("content")
    b'abc'
    """
    if not isinstance(content, bytes):
        raise ArgumentError(f"'content' type should be bytes, not {type(content).__name__}")
    Path(path).write_bytes(content)


def load_from_file(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file."""
    return Path(path).read_bytes()


def save(
    program: Any, model_path: str | os.PathLike[str], protocol: int = 4, **configs: Any
) -> None:
    """Write the parameters and other states of a program to `MODEL_PATH.pdparams` and `.pdopt`.

    >>> with paddle.static.program_guard(paddle.static.Program()) as program:
    ...     w = paddle.create_parameter([2], "float32", name="w")
    >>> paddle.static.save(program, "weights")
    >>> paddle.static.load(program, "weights")
    """
    prefix = os.fspath(model_path)
    if not os.path.basename(prefix):
        raise ArgumentError("the path begins with a file's name: dirname/filename")
    Path(prefix).parent.mkdir(parents=True, exist_ok=True)
    trainable = {s.name for s in program.states.values() if s.trainable}
    values = program.state_dict(scope=current_scope().storage)
    for ending, is_parameter in ((".pdparams", True), (".pdopt", False)):
        arrays = {n: a for n, a in values.items() if (n in trainable) is is_parameter}
        with open(prefix + ending, "wb") as file:
            np.savez(file, **arrays)


def load(
    program: Any,
    model_path: str | os.PathLike[str],
    executor: Any = None,
    var_list: Sequence[Any] | None = None,
) -> None:
    """Store what `save` wrote as the states of a program, or those in `var_list`."""
    state = load_program_state(model_path, var_list)
    known = {s.name for s in program.states.values()}
    set_program_state(program, {n: a for n, a in state.items() if n in known})


def load_program_state(
    model_path: str | os.PathLike[str], var_list: Sequence[Any] | None = None
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that `save` wrote, by name."""
    prefix = os.fspath(model_path)
    if not os.path.exists(f"{prefix}.pdparams"):
        raise LoadError(f"there is no file '{prefix}.pdparams'")
    found: dict[str, np.ndarray[Any, Any]] = {}
    for ending in (".pdparams", ".pdopt"):
        if ending == ".pdparams" or os.path.exists(prefix + ending):
            with np.load(prefix + ending, allow_pickle=False) as arrays:
                found.update(arrays)
    wanted = None if var_list is None else {getattr(v, "name", v) for v in var_list}
    return found if wanted is None else {n: a for n, a in found.items() if n in wanted}


def set_program_state(program: Any, state_dict: Mapping[str, Any]) -> None:
    """Store arrays by name as the states of a program; unknown names are ignored."""
    known = {s.name for s in program.states.values()}
    values = {n: np.asarray(a) for n, a in state_dict.items() if n in known}
    program.set_state_dict(values, scope=current_scope().storage)
