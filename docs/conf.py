"""How Sphinx builds this documentation: `sphinx-build -W docs site`."""

import primgraph

project = "primgraph"
release = version = primgraph.__version__
copyright = "the authors of primgraph, MIT licence"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "primgraph"
html_copy_source = False
html_show_sphinx = False

myst_heading_anchors = 3

# Docstrings are written for the eye: single backticks are code in them.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
autodoc_type_aliases = {
    name: name
    for name in (
        "ArrayLike", "Axes", "Clip", "DType", "Feeds", "Fetch", "Function", "Result", "Schedule",
        "Seeds", "Shape", "Variables",
    )
}  # fmt: skip


def mark_code(app, what, name, obj, options, lines):
    """Indented code in a docstring becomes a block: what comes before it gets a second colon."""
    for i, line in enumerate(lines[:-2]):
        indented = not lines[i + 1].strip() and lines[i + 2].startswith("    ")
        if indented and line and not line.startswith((" ", "-")):
            lines[i + 1 : i + 2] = ["", "::", ""]


def setup(app):
    app.connect("autodoc-process-docstring", mark_code)
