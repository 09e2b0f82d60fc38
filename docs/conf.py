"""How Sphinx builds this documentation: `sphinx-build -W docs site`.

Sphinx with MyST and Furo, because all three are maintained and past 1.0: Material for MkDocs takes
no new features and has had fixes until November 2026 only, MkDocs itself stands still, and their
successor, Zensical, is at 0.x.
"""

import inspect
import os
import re
import sys
from pathlib import Path

# The examples of the gallery have small matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from docutils.statemachine import StringList
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import primgraph
from primgraph.operators.names import names_of

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import gallery_pictures  # noqa: E402

project = "primgraph"
release = version = primgraph.__version__
copyright = "the authors of primgraph, MIT licence"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
html_theme = "furo"
html_title = "primgraph"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["page.css"]
html_show_sphinx = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Blocks that show what is printed have no button.
copybutton_selector = ", ".join(
    f"div.highlight-{name} pre" for name in ("python", "Python", "sh", "c", "default")
)
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# A minute: `-D plot_gallery=0` shows the examples without running them.
sphinx_gallery_conf = {
    "examples_dirs": gallery_pictures.copied(HERE.parent / "build" / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": gallery_pictures.pattern(),
    "image_scrapers": ("matplotlib", "gallery_pictures.draw_graph"),
    "reset_modules": ("matplotlib", "gallery_pictures.set_steps"),
    "within_subsection_order": "NumberOfCodeLinesSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,
}

# Docstrings are written for the eye: single backticks are code in them.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
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


def name_aliases(app, what, name, obj, options, signature, returns):
    """The aliases above within larger types, which autodoc leaves wrapped, and public names.

    The length of a signature, which decides whether it is broken, is that of the names in it.
    Errors have the signature of their base class.
    """
    if signature and what == "exception" and obj is not primgraph.PrimgraphError:
        return "", None
    return tuple(text and _named(text) for text in (signature, returns))


def _named(text):
    text = re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text)
    return re.sub(r"~primgraph(?:\.\w+)*\.(\w+)", _public, text)


def _public(match):
    return f"~primgraph.{match[1]}" if hasattr(primgraph, match[1]) else match[0]


def forget_overloads(app):
    """Show the one signature that a docstring is about."""
    for name in sorted({getattr(getattr(primgraph, n), "__module__", "") for n in dir(primgraph)}):
        if name.startswith("primgraph.") and "@overload" in inspect.getsource(sys.modules[name]):
            analyzer = ModuleAnalyzer.for_module(name)
            analyzer.analyze()
            analyzer.overloads.clear()


class AutoNames(SphinxDirective):
    """Document names of primgraph: `.. autonames:: grad vjp primgraph.operators.index.sorting`.

    A module stands for its public names, in alphabetical order.
    """

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        for word in self.arguments[0].split():
            for name in sorted(names_of(word)) if "." in word else [word]:
                found, kind, option = getattr(primgraph, name), "function", ""
                if inspect.isclass(found):
                    kind = "class"
                    if issubclass(found, Exception):
                        kind, option = "exception", "   :show-inheritance:"
                lines = [f".. auto{kind}:: primgraph.{name}", option, ""]
                self.content += StringList(lines, source="autonames")
        return self.parse_content_to_nodes()


def setup(app):
    app.add_directive("autonames", AutoNames)
    app.connect("autodoc-process-docstring", mark_code)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("builder-inited", forget_overloads)
