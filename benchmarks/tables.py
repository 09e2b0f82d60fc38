"""The tables that run.py prints: times, ratios, first calls and memory."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Results = Sequence[dict[str, Any]]

# What others are compared with, of which there may be both.
BASES = ("primgraph", "native")


def environment_line(found: dict[str, Any]) -> str:
    """What was measured on, in one line."""
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items())
    threads = "default threads" if found["threads"] is None else f"threads: {found['threads']}"
    return (
        f"Python {found['python']}, {versions}; {found['machine']}, {found['cores']} cores, "
        f"{threads}; medians of {found['rounds']} rounds"
    )


def seconds(value: float) -> str:
    """A time with three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    lines = [" | ".join(line) for line in (head, *rows)]
    return [f"| {lines[0]} |", "|---" * len(head) + "|", *(f"| {line} |" for line in lines[1:])]


def _cell(record: dict[str, Any] | None, text: Callable[[dict[str, Any]], str]) -> str:
    if record is None:
        return "-"
    return "failed" if "failure" in record else text(record)


def times(results: Results, names: Sequence[str]) -> list[str]:
    """Median times, the variant that was fastest, and processors that others used."""

    def text(record: dict[str, Any]) -> str:
        variant = f" ({record['variant']})" if record["variant"] else ""
        return seconds(record["median"]) + variant

    rows = []
    for result in results:
        cells = [_cell(result["tools"].get(n), text) for n in names]
        used = [t.get("others") for t in result["tools"].values()]
        others = [u for u in used if u is not None]
        rows.append([result["case"], *cells, f"{max(others):.1f}" if others else "-"])
    return table(["time", *names, "others' cores"], rows)


def _ratio(result: dict[str, Any], base: str, name: str) -> tuple[float, float] | None:
    """How many times as long `base` takes: the median over rounds, and the shortest times."""
    mine, other = result["tools"].get(base, {}), result["tools"].get(name, {})
    if "rounds" not in mine or "rounds" not in other:
        return None
    pairs = zip(mine["rounds"], other["rounds"], strict=True)
    return statistics.median(a / b for a, b in pairs), mine["min"] / other["min"]


def ratios(results: Results, names: Sequence[str]) -> list[str]:
    """primgraph's time over that of every other tool, with geometric means; native code's, too.

    In brackets the ratio of the shortest times, which tells more where others use the machine.
    """
    bases = [b for b in BASES if b in names] or [BASES[0]]
    tables = [_ratios_of(base, results, names) for base in bases]
    return [line for k, lines in enumerate(tables) for line in ([""] if k else []) + lines]


def _ratios_of(base: str, results: Results, names: Sequence[str]) -> list[str]:
    others = [n for n in names if n != base]
    rows = []
    for result in results:
        found = [_ratio(result, base, n) for n in others]
        rows.append([result["case"], *("-" if r is None else _shown(r) for r in found)])
    for title, chosen in _groups(results):
        cells = []
        for name in others:
            known = [r for result in chosen if (r := _ratio(result, base, name)) is not None]
            means = [statistics.geometric_mean(column) for column in zip(*known, strict=True)]
            cells.append(f"{_shown(means)} of {len(known)}" if means else "-")
        rows.append([title, *cells])
    return table([f"{base}'s time /", *others], rows)


def _shown(pair: Sequence[float]) -> str:
    return "{:.2f} ({:.2f})".format(*pair)


def _groups(results: Results) -> Iterator[tuple[str, Results]]:
    yield "geometric mean", results
    rest = [r for r in results if r["workload"] != "W1"]
    if rest and len(rest) < len(results):
        yield "geometric mean but W1", rest


def first_calls(results: Results, names: Sequence[str]) -> list[str]:
    """Seconds from nothing to the first results, and memory at the most until then."""

    def text(record: dict[str, Any]) -> str:
        return f"{seconds(record['first'])}, {record['peak']:.0f} MB"

    rows = [[r["case"], *(_cell(r["tools"].get(n), text) for n in names)] for r in results]
    return table(["first call, peak memory", *names], rows)
