"""Programs of StableHLO, run by XLA."""

import re

import jax
import numpy as np
from jax._src.compiler import get_compile_options
from jax._src.interpreters import mlir
from jax.extend.mlir import ir
from jaxlib import _jax


def type_text(array):
    """The type of an array in MLIR."""
    kind, bits = array.dtype.kind, 8 * array.dtype.itemsize
    known = {"f": f"f{bits}", "i": f"i{bits}", "u": f"ui{bits}", "b": "i1"}
    number = known.get(kind, f"complex<f{bits // 2}>")
    return "tensor<" + "".join(f"{n}x" for n in array.shape) + number + ">"


def with_static_main(text, arrays, results):
    """A module whose main has arguments and results of these types, and calls that of `text`."""
    (named,) = re.findall(r"public @main\((.*?)\) -> (.*?) \{\n", text)
    declared = re.findall(r"tensor<.*?>+", named[0]), re.findall(r"tensor<.*?>+", named[1])
    lines = []
    for k, (array, type) in enumerate(zip(arrays, declared[0], strict=True)):
        lines.append(f"%d{k} = stablehlo.convert %a{k} : ({type_text(array)}) -> {type}")
    given = ", ".join(f"%d{k}" for k in range(len(arrays)))
    counted = f"%r:{len(results)}" if results else ""
    call = f"call @dynamic({given}) : ({', '.join(declared[0])}) -> ({', '.join(declared[1])})"
    lines.append(f"{counted} = {call}" if results else call)
    for k, (array, type) in enumerate(zip(results, declared[1], strict=True)):
        lines.append(f"%s{k} = stablehlo.convert %r#{k} : ({type}) -> {type_text(array)}")
    made = ", ".join(f"%s{k}" for k in range(len(results)))
    types = ", ".join(map(type_text, results))
    lines.append(f"return {made} : {types}")
    head = ", ".join(f"%a{k}: {type_text(a)}" for k, a in enumerate(arrays))
    main = f"func.func public @main({head}) -> ({types}) {{\n" + "\n".join(lines) + "\n}\n"
    whole = text.replace("public @main(", "private @dynamic(")
    return re.sub(r"(module @.*? \{\n)", lambda m: m[1] + main, whole, count=1)


def run_text(text, arrays, results):
    """The results of XLA for the text of a module, on arrays; `results` have the same types."""
    with mlir.make_ir_context():
        if "?" in text:
            module = ir.Module.parse(with_static_main(text, arrays, results))
            module = mlir.refine_polymorphic_shapes(module)
        else:
            module = ir.Module.parse(text)
        client = jax.devices("cpu")[0].client
        devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
        program = client.compile_and_load(str(module), devices, get_compile_options(1, 1))
    with jax.enable_x64(True):
        placed = [jax.device_put(a, client.local_devices()[0]) for a in arrays]
        found = program.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [np.asarray(x[0]) for x in found]
