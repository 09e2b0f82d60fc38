"""Command line: inspect, differentiate, check and translate code in the user's files."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

import numpy as np

from primgraph.base.files import require_own
from primgraph.base.user_lines import caller
from primgraph.cli.targets import Target, find
from primgraph.codegen import get_num_threads
from primgraph.codegen.ir.limits import cache_bytes
from primgraph.codegen.targets.export.file import c_source, save_c
from primgraph.codegen.targets.readable.standalone import standalone_source
from primgraph.derivatives.grad import forward_grad, grad
from primgraph.derivatives.matrices.jacobian import hessian
from primgraph.errors import ArgumentError, NotDifferentiable, PrimgraphError
from primgraph.inspect.check import check_grads
from primgraph.inspect.cost import cost
from primgraph.inspect.profile import profile
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import flatten_value
from primgraph.ir.graph import Graph
from primgraph.ir.rebuild import NOWHERE, copy
from primgraph.operators.variable import Variable
from primgraph.program.compile import compile_kernel
from primgraph.transforms.lower import lower
from primgraph.transforms.pipeline import optimize_graph
from primgraph.view.steps import steps

_TARGET = (
    "FILE.py:NAME (a function, Program, Variable, Graph or Kernel), a saved program, or graph text"
)
_TYPE = "the type of each argument of a function: f64[3,4], or 3,4 for the default dtype"

Derive = Callable[[list[Variable], list[Variable]], Sequence[Variable | None]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status is 0, 1 for an error, and 2 for a wrong command line."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except PrimgraphError as error:
        # If no line of the user is involved, the command line is named instead of this module.
        if error.place == caller():
            error.place = None
        place = str(caller())
        error.origin = tuple(
            line.partition(place)[0] + "the command line" if place in line else line
            for line in error.origin
        )
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader closed the pipe; nothing must be written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.filename is None or error.filename != getattr(options, "output", None):
            return _report_error(error)
        print(f"error: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except Exception as error:
        return _report_error(error)
    return 0


def _report_error(error: Exception) -> int:
    """Print an error of the user's file or function, from its first frame on."""
    handled = error.__context__
    if handled is not None and _outside(handled.__traceback__) is None:
        # Primgraph has caught it: it means nothing to the user.
        error.__suppress_context__ = True
    trace = error.__traceback__
    traceback.print_exception(error.with_traceback(_outside(trace) or trace))
    return 1


def _outside(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the first frame outside of primgraph and the import system.

    Return None if there is none.
    """
    own = __name__.partition(".")[0]
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if module not in (own, "importlib"):
            return trace
        trace = trace.tb_next
    return None


def _emit_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    emit = _command(
        commands, "emit", _emit, "write functions that need NumPy only, or nothing but C"
    )
    _add_wrt_option(emit)
    emit.add_argument(
        "--what",
        default="value,gradient,hessian",
        help="some of value, gradient, hessian, separated by commas; by default all three",
    )
    emit.add_argument(
        "--target",
        dest="target_language",
        choices=("numpy", "c"),
        default="numpy",
        help="a Python file that needs NumPy only (numpy), or C11 and its header (c)",
    )
    _output(emit, "the standard output")


def _cache_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    about = "tell what compiled C is kept, and where, or remove it"
    kept = commands.add_parser("cache", help=about, description=about.capitalize() + ".")
    kept.add_argument("what", nargs="?", choices=("show", "clear"), default="show")
    kept.set_defaults(run=_cache)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "primgraph", description="Programs and their derivatives of any order as NumPy source."
    )
    version = f"primgraph {sys.modules['primgraph'].__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    show = _command(commands, "show", _show, "print a graph as text, which can be read again")
    show.add_argument("--stage", choices=("built", "lowered", "compiled"), default="built")
    show.add_argument("--tree", action="store_true", help="by lines of your code, as a tree")

    grad = _command(commands, "grad", _grad, "print the graph of a derivative")
    _add_wrt_option(grad)
    grad.add_argument("--order", type=_positive, default=1, help="differentiate so often (1)")
    grad.add_argument("--forward", action="store_true", help="by forward mode")
    grad.add_argument("--source", action="store_true", help="print its NumPy source instead")

    _emit_command(commands)

    check = _command(commands, "check", _check, "compare derivatives with independent ones")
    check.add_argument("--order", type=_positive, default=2, help="up to this order (2)")
    _add_feed_options(check)

    view = _command(commands, "view", _view, "draw a graph, as a page to look at in a browser")
    _output(view, "a page named as the graph; other names end in .svg, .dot, .mmd or .json")

    times = _command(commands, "profile", _profile, "measure where the time of a run goes")
    times.add_argument("--by", choices=("line", "equation", "op"), default="line")
    times.add_argument("--top", type=_positive, default=20, help="rows in the table (20)")
    _add_feed_options(times)
    _output(times, "none; a page .html, a picture .svg, or figures .json")

    _command(commands, "info", _info, "print versions, and what a graph needs", "?")

    _cache_command(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    run: Callable[[argparse.Namespace], None],
    help: str,
    count: str | None = None,
) -> argparse.ArgumentParser:
    """Add a command for a target, or for none if `count` is "?"."""
    parser = commands.add_parser(name, help=help, description=help.capitalize() + ".")
    parser.add_argument("target", metavar="TARGET", nargs=count, help=_TARGET)
    parser.add_argument("types", metavar="TYPE", nargs="*", help=_TYPE)
    parser.add_argument(
        "--fetch",
        metavar="NAME",
        action="append",
        default=[],
        help="an output of a program; by default its last values",
    )
    parser.add_argument(
        "--constants", metavar="FILE.npz", help="the long constants beside the text of a graph"
    )
    parser.set_defaults(run=run)
    return parser


def _add_wrt_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wrt",
        metavar="NAME",
        action="append",
        default=[],
        help="an input to differentiate by; by default all parameters, or all float inputs",
    )


def _add_feed_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--feed", metavar="FILE.npz", help="arrays for the inputs, by name")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random numbers for all others (0)"
    )


def _output(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help=f"where to; by default {default}")
    parser.add_argument(
        "--force", action="store_true", help="overwrite a file that primgraph did not write"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer of at least 1")
    return int(text)


def _find_target(options: argparse.Namespace) -> Target:
    return find(options.target, options.types, options.fetch, options.constants)


def _show(options: argparse.Namespace) -> None:
    stages = {"built": lambda graph: graph, "lowered": lower, "compiled": optimize_graph}
    graph = stages[options.stage](_find_target(options).graph)
    if options.tree:
        graph.show(lines=max(60, len(graph)))
    else:
        print(graph)


def _grad(options: argparse.Namespace) -> None:
    target = _find_target(options)
    inputs = target.inputs(options.wrt)
    if options.order > 1 and len(inputs) != 1:
        raise ArgumentError(
            f"derivatives of order {options.order} are taken by one input, not by "
            f"{', '.join(v.hint for v in inputs)}",
            hint="say by which one, as in: --wrt x",
        )
    mode: Callable[..., list[Variable]] = forward_grad if options.forward else grad

    def derive(outputs: list[Variable], wrt: list[Variable]) -> Sequence[Variable | None]:
        found: Sequence[Variable | None] = outputs
        for _ in range(options.order):
            found = mode(found, wrt)
        return found

    graph = optimize_graph(_derive_graph(target, options.wrt, "grad", derive))
    print(standalone_source([graph]).rstrip("\n") if options.source else graph)


def _emit(options: argparse.Namespace) -> None:
    target = _find_target(options)
    known: dict[str, Derive] = {
        "value": lambda outputs, wrt: outputs,
        "gradient": lambda outputs, wrt: grad(outputs, wrt, materialize_grads=True),
        "hessian": _hessian,
    }
    names = [name.strip() for name in options.what.split(",")]
    if not set(names) <= set(known):
        raise ArgumentError(f"--what takes some of {', '.join(known)}, not {options.what!r}")
    graphs = [
        optimize_graph(
            _derive_graph(target, options.wrt, "" if name == "value" else name, known[name])
        )
        for name in dict.fromkeys(names)
    ]
    if options.target_language == "c":
        if options.output is None:
            print(*c_source(graphs, target.graph.name), sep="\n", end="")
            return
        save_c(options.output, graphs, force=options.force)
        header = Path(options.output).with_suffix(".h")
        print(f"{options.output}, {header}: {', '.join(g.name for g in graphs)}")
        return
    if options.output is not None and Path(options.output).suffix.lower() != ".py":
        raise ArgumentError(
            f"{options.output!r:.200} does not end in .py, as a file of NumPy code does",
            hint="--output model.py writes NumPy code, --target c --output model.c writes C",
        )
    source = standalone_source(graphs)
    if options.output is None:
        print(source, end="")
    else:
        Path(_writable(options, options.output)).write_text(source, encoding="ascii")
        print(f"{options.output}: {', '.join(g.name for g in graphs)}")


def _writable(options: argparse.Namespace, path: str) -> str:
    """Return `path` if it would overwrite no file of the user, or with --force."""
    if not options.force:
        require_own(path, "choose another file, or say --force")
    return path


def _hessian(outputs: list[Variable], wrt: list[Variable]) -> list[Variable]:
    hint = "leave it out: --what value,gradient"
    if len(outputs) != 1:
        raise ArgumentError(
            f"a Hessian is that of one output, and there are {len(outputs)}", hint=hint
        )
    if outputs[0].size != 1:
        type = outputs[0].value.type
        raise ArgumentError(
            f"a Hessian is that of one element, and the output is {type}", hint=hint
        )
    rows = hessian(outputs[0], wrt)
    return [block for row in rows for block in row]


def _derive_graph(target: Target, wrt: Sequence[str], suffix: str, derive: Derive) -> Graph:
    """Apply `derive` to the outputs of the target and to the inputs named in `wrt`, and return the
    graph."""
    graph, chosen = target.graph, target.inputs(wrt)
    builder = Builder(graph.name)
    moved = {v: builder.input(v.type, v.hint) for v in graph.inputs}
    for eqn in graph.body:
        copy(builder, eqn, moved)
    # Equations that combine derivatives belong to no line of the user.
    builder.source = NOWHERE
    outputs = [Variable(builder, moved[v]) for v in graph.outputs]
    with builder:
        try:
            found = derive(outputs, [Variable(builder, moved[v]) for v in chosen])
        except NotDifferentiable as error:
            ends = "" if target.program is None else "choose the outputs with --fetch, and "
            error.hint = f"{ends}choose the inputs to differentiate by with --wrt"
            raise
    missing = [v.hint for v, made in zip(chosen, found, strict=False) if made is None]
    if missing:
        raise ArgumentError(
            f"nothing that {graph.name} returns depends on {', '.join(missing)}",
            hint="choose the inputs to differentiate by with --wrt",
        )
    values = [made.value for made in found if made is not None]
    name = f"{graph.name}_{suffix}" if suffix else graph.name
    form = graph.form
    if form is not None and suffix:
        tree, _ = flatten_value(
            values[0] if len(values) == 1 else tuple(values), lambda item: False
        )
        form = replace(form, results=tree)
    return builder.part(builder.inputs, values, name, form)


def _check(options: argparse.Namespace) -> None:
    target = _find_target(options)
    arrays = target.arrays(options.seed, options.feed)
    graph = target.graph.in_form(None)
    check_grads(graph, [arrays[v.hint] for v in graph.inputs], order=options.order)
    names = ", ".join(v.hint for v in graph.inputs if v.type.is_float)
    print(
        f"{graph.name}: derivatives by {names} up to order {options.order}, forward and reverse, "
        "agree with independent ones"
    )


def _view(options: argparse.Namespace) -> None:
    graph = _find_target(options).graph
    name = graph.name if graph.name.isidentifier() else "graph"
    path = Path(_writable(options, options.output or f"{name}.html"))
    if path.suffix.lower() == ".html":
        steps(graph).save(path)
    else:
        graph.save(path)
    print(path)


def _profile(options: argparse.Namespace) -> None:
    target = _find_target(options)
    arrays = target.arrays(options.seed, options.feed)
    if target.program is None:
        found = profile(target.graph.in_form(None), arrays, ranges=True)
    else:
        program = target.program
        outputs = [Variable(program.builder, v) for v in target.graph.outputs]
        feed = {name: a for name, a in arrays.items() if name in program.inputs}
        found = profile(program, feed, outputs, ranges=True)
    if options.output is not None:
        found.save(_writable(options, options.output))
    print(found.headline)
    print(found.table(options.by, options.top))


def _cache(options: argparse.Namespace) -> None:
    kept = importlib.import_module("primgraph.codegen.runtime.toolchain.cache")
    found = kept.clear() if options.what == "clear" else kept.contents()
    size = f"{found.size / 2**20:.1f} MiB"
    # A path may contain bytes that are not Unicode.
    folder = os.fsencode(found.folder).decode(errors="backslashreplace")
    if options.what == "clear":
        print(f"removed {found.files} files, {size}, from {folder}")
        return
    rows = {
        "folder": folder,
        **({"unused": found.fault} if found.fault else {}),
        "files": found.files,
        "size": f"{size} of {kept.LIMIT >> 20} MiB",
    }
    for name, text in rows.items():
        print(f"{name + ':':8} {text}")


def _info(options: argparse.Namespace) -> None:
    if options.target is not None:
        graph = _find_target(options).graph
        print(cost(graph if graph.sizes else compile_kernel(graph)))
        return
    package = sys.modules["primgraph"]
    extras = ("scipy", "rich", "matplotlib", "threadpoolctl", "IPython")
    rows = {
        "primgraph": f"{package.__version__}, in {Path(str(package.__file__)).parent}",
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "NumPy": np.__version__,
        "cores": f"{os.cpu_count()}, kernels use up to {get_num_threads()}",
        "L2 cache": f"{cache_bytes() >> 10} KiB a core",
        "also there": ", ".join(name for name in extras if find_spec(name)) or "nothing",
    }
    for name, text in rows.items():
        print(f"{name + ':':12} {text}")
