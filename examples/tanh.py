"""
Derivatives of tanh as NumPy source
===================================

Build a program with three derivatives of tanh, run it at 1, and print the NumPy source of its
kernel.
"""

import numpy as np

import primgraph as pg

with pg.Program("tanh_derivatives") as program:
    x = pg.data("x", shape=(1,))
    y = pg.tanh(x)
    first = pg.grad(y, x)
    second = pg.grad(first, x)
    third = pg.grad(second, x)

executor = pg.Executor()
values = executor.run(program, feed={"x": np.ones(1)}, fetch_list=[first, second, third])
for order, value in enumerate(values, 1):
    print(f"derivative {order} at 1: {value[0]:.8f}")

print()
print(executor.kernel(program, [first, second, third]).source)
