"""One step of gradient descent for a perceptron with one hidden layer."""

import primgraph as pg


def step(x, labels, params, rate):
    def loss_of(params):
        hidden = pg.relu(x @ params["w1"] + params["b1"])
        logits = hidden @ params["w2"] + params["b2"]
        picked = pg.take_along_axis(
            pg.log_softmax(logits, axis=1), labels[:, None], axis=1
        )
        return -pg.mean(picked)

    loss, grads = pg.value_and_grad(loss_of)(params)
    return loss, {name: params[name] - rate * grads[name] for name in params}


params = {
    "w1": pg.spec((784, 64)),
    "b1": pg.spec((64,)),
    "w2": pg.spec((64, 10)),
    "b2": pg.spec((10,)),
}
graph = pg.trace(step, pg.spec((32, 784)), pg.spec((32,), "int64"), params, pg.spec(()))
kernel = pg.compile(graph)
