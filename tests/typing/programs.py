"""A user's program on variables: checkers read this file, and it runs as well.

Where an error of types is expected, it is ignored: an ignored error that is missing is one itself.
"""

import numpy as np

import primgraph as pg

with pg.Program() as program:
    w, b = pg.data("w", (3, 2)), pg.data("b", (2,))
    loss = pg.sum((w + b) ** 2)
    dw, db = pg.grad(loss, [w, b])
    new = w - 0.1 * dw
    second = pg.grad(pg.sum(dw * dw), w) * 2.0
    along = pg.forward_grad(loss, w) * 2.0
    perhaps = pg.grad(loss, [w, b], allow_unused=True)
    found = [g if g is None else g + 1.0 for g in perhaps]
    # What may be None has to be looked at first.
    found[0] * 2.0  # type: ignore[operator]

values = pg.Executor().run(
    program, feed={"w": np.ones((3, 2)), "b": np.ones(2)}, fetch_list=[new, db, second, along]
)
