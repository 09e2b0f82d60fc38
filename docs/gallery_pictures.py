"""The gallery of examples: number of steps of each, and pictures of their graphs.

sphinx-gallery runs copies of examples/*.py and shows what they print and plot. An example without
a plot is shown with the graph picture of its program.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sphinx_gallery.scrapers import figure_rst

import primgraph as pg

ROOT = Path(__file__).parent.parent
# Values of PRIMGRAPH_EXAMPLE_STEPS that take seconds and still show a result.
STEPS = {"burgers": "400", "orbit": "100", "recurrent": "2"}
# Packages that an example needs; it is shown without results where one is missing.
NEEDS = {
    "digits": ["sklearn"],
    "gaussian_process": ["scipy", "matplotlib"],
    "gmm": ["scipy"],
    "orbit": ["matplotlib"],
    "trajectory": ["scipy", "matplotlib"],
    "vendored": ["scipy"],
}
# It starts processes.
NOT_RUN = ["cluster"]


def _kepler(time: Any) -> Any:
    """Two steps of the fixed point of adaptive.py, and their derivative."""
    place = time + 0.8 * pg.sin(time + 0.8 * pg.sin(time))
    return place, pg.grad(place, time)


def _rosenbrock(names: dict[str, Any]) -> Any:
    return pg.trace(lambda x: pg.grad(names["rosenbrock"](x), x), pg.spec(10))


def _rosen_products(names: dict[str, Any]) -> Any:
    through = [names["scipy"]]
    return pg.trace(names["rosen_derivatives"], pg.spec(8), pg.spec(8), through=through)


def _two_worlds(names: dict[str, Any]) -> Any:
    network = names["Noise"]()
    adam = pg.optimizer.Adam(0.01, parameters=network.parameters())
    return names["build"](network, adam)[0]


# What is drawn for each example without a plot, from its global names.
GRAPHS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "adaptive": lambda names: pg.trace(_kepler, pg.spec(())),
    "digits": lambda names: names["build"]()[0],
    "gmm": lambda names: next(names["build"](names["made_up"]())).kernel.graph,
    "newton": _rosenbrock,
    "recurrent": lambda names: names["build"]()[0],
    "tanh": lambda names: names["program"],
    "two_worlds": _two_worlds,
    "vendored": _rosen_products,
}


def copied(folder: Path) -> str:
    """Copy the examples to a folder in which they may write; return its name."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in [*(ROOT / "examples").glob("*.py"), ROOT / "examples" / "README.rst"]:
        if path.stem not in ("burgers_step",):
            shutil.copy2(path, folder)
    return str(folder)


def pattern() -> str:
    """A regular expression of the files of examples that can be run here."""
    names = [path.stem for path in (ROOT / "examples").glob("*.py")]
    runnable = [
        name
        for name in names
        if name not in NOT_RUN and all(map(importlib.util.find_spec, NEEDS.get(name, [])))
    ]
    return rf"[/\\]({'|'.join(sorted(runnable))})\.py$"


def set_steps(gallery_conf: dict[str, Any], fname: str) -> None:
    """Set the number of steps of an example before it runs."""
    builtins.__file__ = str(fname)  # type: ignore[attr-defined]  # sphinx-gallery defines none
    os.environ["PRIMGRAPH_EXAMPLE_STEPS"] = STEPS.get(Path(fname).stem, "20")
    np.random.seed(0)  # noqa: NPY002
    pg.seed(0)


def draw_graph(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the graph picture of an example without a plot, for its page and thumbnail."""
    draw = GRAPHS.get(Path(block_vars["src_file"]).stem)
    if draw is None:
        return ""
    path = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
    drawn = draw(block_vars["example_globals"])
    path.write_text(drawn.to_svg(), encoding="utf-8")
    return str(figure_rst([str(path)], gallery_conf["src_dir"], "The graph of the program"))
