"""Run the recorded snippets and programs with `primgraph.compat`, and compare the results.

    python tests/recorded/judging.py [SYSTEM ...]
    python tests/recorded/judging.py --write

prints the share that agrees by topic, the names that are missing by number of snippets, and results
that differ. `--write` updates `known_differences.txt`: lines `SYSTEM NAME REASON` of what does not
agree. A reason begins with "choice:" (decided, and left alone by `--write`), "missing:" (names that
primgraph does not have) or "wrong:" (everything else).
"""

from __future__ import annotations

import ast
import importlib
import json
import math
import re
import sys
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from record import FOLDER, SYSTEMS, change_imports, encode, fresh_state, line_of, run, sources

TABLE = FOLDER / "known_differences.txt"
REASONS = ("choice:", "missing:", "wrong:")


@cache
def records(system: str) -> dict[str, Any]:
    """Return the recorded results by name; for MegEngine programs those of `expected()`."""
    file = FOLDER / f"{system}.json"
    return json.loads(file.read_text(encoding="utf-8"))["results"] if file.exists() else {}


def read_table() -> dict[tuple[str, str], str]:
    """Return the reason of each known difference by system and name."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line and not line.startswith("#")]
    return {(system, name): reason for system, name, reason in rows}


def differences(system: str, name: str, *, apart: bool = False) -> list[str]:
    """Return how the result of `name` differs from the record; empty if it does not.

    `apart` looks at the elements of a tuple one at a time, which finds more than the first error.
    """
    text = change_imports(sources_of(system)[name], system, f"primgraph.compat.{system}")
    with fresh_state(importlib.import_module(f"primgraph.compat.{system}")):
        value, error = run(text)
        if system == "megengine":
            record, failed = run(text.removesuffix("main()\n") + "expected()\n")
            theirs = encode(record) if failed is None else None
        else:
            theirs = records(system)[name]
        looser = 100.0 if name.startswith("programs/") else 1.0
        found = compare_error(error, theirs) if error else encode_and_compare(value, theirs, looser)
        if not (found and apart and isinstance(theirs, list)):
            return found
        text = text_apart(text, len(theirs))
        return found if text is None else elements_apart(text, theirs) or found


@cache
def sources_of(system: str) -> dict[str, str]:
    return sources(system)


def text_apart(text: str, count: int) -> str | None:
    """Replace the elements of the last expression by functions; None if there are not `count`."""
    tree = ast.parse(text)
    last = tree.body[-1]
    parts = parts_of(last.value) if isinstance(last, ast.Expr) else []
    if len(parts) != count:
        return None
    functions = ast.parse(f"[{', '.join(f'lambda: ({p})' for p in parts)}]", mode="eval")
    return ast.unparse(ast.Module([*tree.body[:-1], ast.Expr(functions.body)], []))


def parts_of(value: ast.expr) -> list[str]:
    """Return the elements of `a, b` and of `[f(x) for x in (a, b)]`."""
    if isinstance(value, ast.Tuple):
        return [ast.unparse(e) for e in value.elts]
    if isinstance(value, ast.ListComp) and isinstance(value.generators[0].iter, ast.Tuple):
        element, target = map(ast.unparse, (value.elt, value.generators[0].target))
        elements = map(ast.unparse, value.generators[0].iter.elts)
        return [f"[{element} for {target} in ({e},)][0]" for e in elements]
    return []


def elements_apart(text: str, theirs: list[Any]) -> list[str]:
    functions, error = run(text)
    if error is not None:
        return compare_error(error, theirs)
    found = []
    for function, record in zip(functions, theirs, strict=True):
        try:
            value = function()
        except Exception as failure:
            found += compare_error(failure, record)
        else:
            found += encode_and_compare(value, record)
    return list(dict.fromkeys(found))


def encode_and_compare(value: Any, theirs: Any, looser: float = 1.0) -> list[str]:
    try:
        ours = encode(value)
    except Exception as error:
        return compare_error(error, theirs)
    return compare(ours, theirs, looser)


def compare_error(error: BaseException, theirs: Any) -> list[str]:
    """Compare an error with the record: its class or a base, and the line."""
    missing = missing_name(error)
    if not (isinstance(theirs, dict) and "raises" in theirs):
        text = re.sub(r" written here.*|0x\w+", "", " ".join(str(error).split()))
        return [f"missing: {missing}" if missing else f"wrong: {type(error).__name__}: {text:.80}"]
    bases = [c.__name__ for c in type(error).__mro__]
    if missing and theirs["raises"] not in bases:
        return [f"missing: {missing}"]
    if theirs["raises"] not in bases:
        return [f"wrong: {type(error).__name__}, not {theirs['raises']}"]
    # Errors of elements may be raised when a result is read, which is no line of the snippet.
    if line_of(error) not in (0, theirs["line"]):
        return [f"wrong: {type(error).__name__} in another line"]
    return []


def missing_name(error: BaseException) -> str:
    """Return the name or argument whose absence `error` reports; empty if it reports another."""
    text = " ".join(str(error).split())
    if isinstance(error, ImportError):
        found = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", text)
        module = re.search(r"No module named '([\w.]+)'", text)
        path = f"{found[2]}.{found[1]}" if found else module[1] if module else text
        return path.removeprefix("primgraph.compat.")
    if isinstance(error, AttributeError):
        patterns = (r"^(\S+) is not part of", r"^(.*?) has nothing named '(\w+)'")
        patterns += (r"^'(\w+)' object has no attribute '(\w+)'",)
        found = next(filter(None, (re.search(p, text) for p in patterns)), None)
        if found is None or found[1] == "NoneType":
            return ""
        owner = found[1].strip("'").replace("a tensor", "Tensor")
        return ".".join((owner, *found.groups()[1:]))
    if isinstance(error, TypeError):
        found = re.search(r"([\w.]+)\(\) got an unexpected keyword argument '(\w+)'", text)
        return f"{found[1]}({found[2]}=)" if found else ""
    return ""


def compare(ours: Any, theirs: Any, looser: float = 1.0) -> list[str]:
    """Return the first difference of two encoded results; empty if there is none.

    `looser` multiplies the tolerances: in programs of many steps roundings add up.
    """
    if isinstance(theirs, dict) and "raises" in theirs:
        return [f"wrong: no {theirs['raises']}"]
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            return [f"wrong: {len(ours)} elements, not {len(theirs)}"]
        pairs = zip(ours, theirs, strict=True)
        return next(filter(None, (compare(a, b, looser) for a, b in pairs)), [])
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return compare_dicts(ours, theirs, looser)
    if isinstance(theirs, float) and isinstance(ours, float):
        with np.errstate(over="ignore"):
            tolerance = looser * (1e-6 if float(np.float32(theirs)) == theirs else 1e-12)
        equal = math.isclose(ours, theirs, rel_tol=tolerance) or (ours != ours and theirs != theirs)
        return [] if equal else [f"wrong: value {ours!r}, not {theirs!r}"]
    if type(ours) is type(theirs) and ours == theirs:
        return []
    return [re.sub(r"0x\w+", "", f"wrong: {short(ours)}, not {short(theirs)}")]


def short(value: Any) -> str:
    """Return a few words for an encoded result."""
    if isinstance(value, dict):
        kind = next(k for k in value if k not in ("shape", "values"))
        return f"{kind} {value[kind]}"[:40]
    return "a sequence" if isinstance(value, list) else repr(value)[:60]


def compare_dicts(ours: dict[str, Any], theirs: dict[str, Any], looser: float) -> list[str]:
    if set(ours) != set(theirs):
        return [f"wrong: {short(ours)}, not {short(theirs)}"]
    if "values" not in theirs:
        (key,) = theirs
        return compare(ours[key], theirs[key], looser)
    kind = next(k for k in theirs if k not in ("shape", "values"))
    for field in (kind, "shape"):
        if ours[field] != theirs[field]:
            return [f"wrong: {ours[field]}, not {theirs[field]}"]
    values = np.array(ours["values"]), np.array(theirs["values"])
    return compare_values(*values, theirs[kind], looser)


def compare_values(ours: np.ndarray, theirs: np.ndarray, dtype: str, looser: float) -> list[str]:
    """Compare numbers: to 1e-6 of the largest for float32, 1e-12 for float64, others exactly."""
    tolerances = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-6, "complex64": 1e-6}
    tolerances |= {"float16": 1e-3, "bfloat16": 1e-2}
    if dtype not in tolerances or not theirs.size:
        equal = np.array_equal(ours, theirs)
    else:
        finite = theirs[np.isfinite(theirs)]
        scale = np.max(np.abs(finite), initial=0.0)
        bound = looser * tolerances[dtype] * scale
        equal = np.allclose(ours, theirs, rtol=0.0, atol=bound, equal_nan=True)
    if equal:
        return []
    with np.errstate(all="ignore"):
        place = int(np.argmax(np.nan_to_num(np.abs(ours - theirs), nan=np.inf))) if ours.size else 0
    return [f"wrong: value {ours.flat[place]:.9g}, not {theirs.flat[place]:.9g}"]


def judge(systems: list[str]) -> dict[tuple[str, str], list[str]]:
    """Return the differences of each snippet and program of `systems`."""
    return {
        (system, name): differences(system, name, apart=True)
        for system in systems
        for name in sources_of(system)
    }


def print_report(found: dict[tuple[str, str], list[str]]) -> None:
    """Print shares by topic, missing names by number of snippets, and other differences."""
    topics: dict[tuple[str, str], list[bool]] = {}
    for (system, name), texts in found.items():
        for topic in (name.split("/")[0], "all"):
            topics.setdefault((system, topic), []).append(not texts)
    for (system, topic), agrees in sorted(topics.items()):
        print(f"{system} {topic}: {sum(agrees)} of {len(agrees)}, {np.mean(agrees):.0%}")
    reasons = [(key, text) for key, texts in found.items() for text in texts]
    names = Counter(f"{key[0]} {text}" for key, text in reasons if text.startswith("missing"))
    print("\nMissing:", *[f"{count} {name}" for name, count in names.most_common()], sep="\n")
    print("\nWrong:")
    for (system, name), text in reasons:
        if text.startswith("wrong"):
            print(f"{system} {name} {text}")


def write_table(found: dict[tuple[str, str], list[str]]) -> None:
    """Write the table of known differences; choices that still differ keep their reasons."""
    known = read_table() if TABLE.exists() else {}
    rows = {key: reason for key, reason in known.items() if key not in found}
    for key, texts in found.items():
        if texts:
            chosen = known.get(key, "").startswith("choice:")
            rows[key] = known[key] if chosen else "; ".join(texts)
    head = "# Snippets that do not agree yet: python tests/recorded/judging.py --write\n"
    lines = [f"{system} {name} {reason}\n" for (system, name), reason in sorted(rows.items())]
    TABLE.write_text(head + "".join(lines), encoding="utf-8")


def main(arguments: list[str]) -> int:
    systems = [a for a in arguments if a in SYSTEMS] or list(SYSTEMS)
    found = judge(systems)
    print_report(found)
    if "--write" in arguments:
        write_table(found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
