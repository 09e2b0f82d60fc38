"""Rendering of generated modules, and of templates."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from primgraph.codegen.targets.text.module import Module

_TEMPLATES = Path(__file__).parents[1] / "templates"


@cache
def _template(name: str) -> Any:
    # jinja2 takes longer to import than all of primgraph, so it is imported lazily.
    jinja2 = importlib.import_module("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(name)


def render(module: Module) -> str:
    """Return the text of `module`, without a template: kernels need it at once."""
    head = [*module.docstring, *module.opening]
    parts = ["\n".join(head), *module.helpers]
    for function in module.functions:
        lines = [*function.decorators, *function.header, *function.indented_lines]
        parts.append("\n".join(lines))
    return "\n\n\n".join([part.removesuffix("\n") for part in parts]) + "\n"


def render_template(name: str, values: Mapping[str, Any]) -> str:
    """Return the text of a template with these values."""
    text: str = _template(name).render(**values)
    return text
