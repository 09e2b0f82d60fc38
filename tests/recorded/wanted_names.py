"""List names that snippets and programs use and `primgraph.compat` lacks, by number of users.

    python tests/recorded/wanted_names.py [SYSTEM ...]

A snippet stops at its first missing name, so the errors of `judging.py` count too few. Here names
of modules are those in the text, whether the snippet comes to them or not. So are attributes of
tensors of which some snippet reports that they are missing; other attributes and arguments count as
often as they are reported.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections import Counter

from judging import judge, sources_of
from record import SYSTEMS


def imported_names(tree: ast.Module, library: str) -> dict[str, str]:
    """Return the dotted name of `library` that each imported name stands for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == library:
                    found[alias.asname or library] = alias.name if alias.asname else library
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == library:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def dotted_names(text: str, library: str) -> set[str]:
    """Return the dotted names of `library` in `text`, such as `torch.nn.Linear`."""
    tree = ast.parse(text)
    names = imported_names(tree, library)
    found = set()
    for node in ast.walk(tree):
        path: list[str] = []
        root: ast.AST = node
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in names:
            found.add(".".join([names[root.id], *reversed(path)]))
    return {n for n in found if not any(other.startswith(n + ".") for other in found)}


def missing_prefix(name: str) -> str:
    """Return the first part of a dotted name that compat does not have; empty if it has all."""
    library, *path = name.split(".")
    value = importlib.import_module(f"primgraph.compat.{library}")
    for k, part in enumerate(path):
        try:
            value = getattr(value, part)
        except AttributeError:
            return ".".join([library, *path[: k + 1]])
    return ""


def attributes(text: str) -> set[str]:
    return {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


def wanted(system: str) -> Counter[str]:
    """Return how many snippets and programs of `system` use each missing name."""
    found: Counter[str] = Counter()
    texts = sources_of(system)
    for text in texts.values():
        names = {n for n in dotted_names(text, system) if missing_prefix(n)}
        found.update(names)
        found.update({f"{missing_prefix(n)}.*" for n in names if missing_prefix(n) != n})
    reported: Counter[str] = Counter()
    for differences in judge([system]).values():
        reported.update({t.partition(": ")[2] for t in differences if t.startswith("missing: ")})
    for name, count in reported.items():
        owner, _, attribute = name.partition(".")
        if owner == "Tensor":
            found[name] = sum(attribute in attributes(text) for text in texts.values())
        elif owner[:1].isupper() or name.endswith("=)"):
            found[name] = count
    return found


def main(systems: list[str]) -> int:
    for system in systems or SYSTEMS:
        for name, count in wanted(system).most_common():
            print(count, name if "." not in name or name.startswith(system) else f"{system} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
