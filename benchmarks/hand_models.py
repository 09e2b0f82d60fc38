"""The larger programs of hand.py: the network of W2, the classifier, the mixture, the LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from cases import VISCOSITY, Array, below_diagonal
from hand_chains import blocks

Function = Callable[..., list[Array]]


class Pinn:
    """Loss and gradients of W2 over blocks of points, in buffers for `size` points.

    The value and its derivatives for t, x and x twice are four layers of one array, so that a
    layer of the network is one product. `a`, `slope` and `bend` are tanh and its derivatives.
    """

    def __init__(self, weights: Sequence[Array], size: int, dtype: Any) -> None:
        self.w, self.b = weights[::2], weights[1::2]
        self.size = size
        widths = [w.shape[1] for w in self.w[:-1]]
        self.before = [np.empty((4, size, n), dtype) for n in widths]
        self.after = [np.empty((4, size, n), dtype) for n in widths]
        self.slope = [np.empty((size, n), dtype) for n in widths]
        self.bend = [np.empty((size, n), dtype) for n in widths]
        self.cotangent = [np.empty((4, size, n), dtype) for n in widths]
        self.spare = [np.empty((3, size, n), dtype) for n in widths]
        self.u, self.du = np.empty((4, size, 1), dtype), np.empty((4, size, 1), dtype)
        self.r = np.empty((2, size, 1), dtype)
        self.parts = [np.empty_like(w) for w in self.w]
        self.gradients = [np.empty_like(w) for w in weights]

    def clear(self) -> None:
        for g in self.gradients:
            g.fill(0)

    def add(self, points: Array, count: int) -> float:
        """Add the gradient of these points to `gradients`; answer with their squared residual."""
        if len(points) != self.size:
            rest = type(self)(
                [x for wb in zip(self.w, self.b, strict=True) for x in wb],
                len(points),
                points.dtype,
            )
            rest.gradients = self.gradients
            return rest.add(points, count)
        w, last = self.w, len(self.w) - 1
        self._first(points)
        for k in range(1, last):
            _product(self.after[k - 1], w[k], self.before[k])
            self._activate(k)
        _product(self.after[-1], w[last], self.u)
        self.u[0] += self.b[last]
        loss = self._residual(count)
        self._weight_gradient(last, self.after[-1], self.du)
        np.multiply(self.du, w[last][:, 0], out=self.cotangent[-1])
        for k in range(last - 1, 0, -1):
            self._back(k)
            self._weight_gradient(k, self.after[k - 1], self.cotangent[k])
            _product(self.cotangent[k], w[k].T, self.cotangent[k - 1])
        self._back(0)
        self._first_gradient(points)
        return loss

    def _first(self, points: Array) -> None:
        """The first layer: its input has constant derivatives."""
        z = self.before[0]
        np.dot(points, self.w[0], out=z[0])
        z[1], z[2], z[3] = self.w[0][1], self.w[0][0], 0
        self._activate(0)

    def _activate(self, k: int) -> None:
        z, a, slope, bend = self.before[k], self.after[k], self.slope[k], self.bend[k]
        spare = self.spare[k][0]
        np.add(z[0], self.b[k], out=z[0])
        np.tanh(z[0], out=a[0])
        np.multiply(a[0], a[0], out=slope)
        np.subtract(1, slope, out=slope)
        np.multiply(a[0], slope, out=bend)
        np.multiply(bend, -2, out=bend)
        np.multiply(z[1:], slope, out=a[1:])
        np.multiply(z[2], z[2], out=spare)
        np.multiply(spare, bend, out=spare)
        np.add(a[3], spare, out=a[3])

    def _residual(self, count: int) -> float:
        (u, u_t, u_x, u_xx), du, (r, spare) = self.u, self.du, self.r
        np.multiply(u, u_x, out=r)
        np.add(r, u_t, out=r)
        np.multiply(u_xx, VISCOSITY, out=spare)
        np.subtract(r, spare, out=r)
        loss = float(np.dot(r[:, 0], r[:, 0]))
        np.multiply(r, 2 / count, out=du[1])
        np.multiply(du[1], u_x, out=du[0])
        np.multiply(du[1], u, out=du[2])
        np.multiply(du[1], -VISCOSITY, out=du[3])
        return loss

    def _back(self, k: int) -> None:
        """From cotangents of what leaves the activation to those of what enters it."""
        z, a, slope, bend = self.before[k], self.after[k], self.slope[k], self.bend[k]
        g, spare = self.cotangent[k], self.spare[k]
        p, q = spare[0], spare[1]
        np.multiply(z[1:], g[1:], out=spare)
        across = self.after[k][1]  # its value is not needed any more by this layer
        np.multiply(z[2], g[3], out=across)
        np.add(p, q, out=p)
        np.add(p, spare[2], out=p)
        np.multiply(p, bend, out=p)
        # The third derivative of tanh, -2 (slope^2 + a bend), times z_x^2 g_xx.
        np.multiply(a[0], bend, out=q)
        np.multiply(g, slope, out=g)
        np.multiply(slope, slope, out=slope)
        np.add(q, slope, out=q)
        np.multiply(q, -2, out=q)
        np.multiply(q, z[2], out=q)
        np.multiply(q, across, out=q)
        np.add(p, q, out=p)
        np.add(g[0], p, out=g[0])
        np.multiply(across, bend, out=across)
        np.multiply(across, 2, out=across)
        np.add(g[2], across, out=g[2])

    def _weight_gradient(self, k: int, inputs: Array, cotangent: Array) -> None:
        flat = inputs.reshape(-1, inputs.shape[2])
        np.dot(flat.T, cotangent.reshape(-1, cotangent.shape[2]), out=self.parts[k])
        self.gradients[2 * k] += self.parts[k]
        self.gradients[2 * k + 1] += cotangent[0].sum(0)

    def _first_gradient(self, points: Array) -> None:
        g = self.cotangent[0]
        np.dot(points.T, g[0], out=self.parts[0])
        self.gradients[0] += self.parts[0]
        self.gradients[0][1] += g[1].sum(0)
        self.gradients[0][0] += g[2].sum(0)
        self.gradients[1] += g[0].sum(0)


class Edge:
    """The mean squared error of the network at places where its value is known."""

    def __init__(self, weights: Sequence[Array], places: Array, known: Array) -> None:
        self.w, self.b, self.known = weights[::2], weights[1::2], known
        rows, dtype = len(places), places.dtype
        self.layers = [places, *(np.empty((rows, w.shape[1]), dtype) for w in self.w)]
        self.back = [np.empty_like(a) for a in self.layers[1:]]
        self.parts = [np.empty_like(w) for w in self.w]

    def add(self, gradients: Sequence[Array]) -> float:
        """Add its gradient; answer with its value."""
        layers, back, last = self.layers, self.back, len(self.w) - 1
        for k, (w, b) in enumerate(zip(self.w, self.b, strict=True)):
            np.dot(layers[k], w, out=layers[k + 1])
            np.add(layers[k + 1], b, out=layers[k + 1])
            if k < last:
                np.tanh(layers[k + 1], out=layers[k + 1])
        error = np.subtract(layers[-1], self.known, out=layers[-1])
        loss = float(np.vdot(error, error)) / error.size
        np.multiply(error, 2 / error.size, out=back[-1])
        for k in range(last, -1, -1):
            np.dot(layers[k].T, back[k], out=self.parts[k])
            gradients[2 * k][...] += self.parts[k]
            gradients[2 * k + 1][...] += back[k].sum(0)
            if k:
                np.dot(back[k], self.w[k].T, out=back[k - 1])
                np.multiply(layers[k], layers[k], out=layers[k])
                np.subtract(1, layers[k], out=layers[k])
                np.multiply(back[k - 1], layers[k], out=back[k - 1])
        return loss


def network(
    kind: type[Pinn], points: Array, weights: Sequence[Array], edge: Edge | None = None
) -> Function:
    """Loss and gradients of W2 by a network of some kind in blocks of 512, and those at an edge."""
    count = len(points)
    size = min(count, 512)
    net, parts = kind(weights, size, points.dtype), blocks(count, size)

    def run(*_: Array) -> list[Array]:
        net.clear()
        loss = sum(net.add(points[b], count) for b in parts) / count
        if edge is not None:
            loss += edge.add(net.gradients)
        return [points.dtype.type(loss), *net.gradients]

    return run


def _product(x: Array, w: Array, out: Array) -> None:
    """One product for all four layers of `x`."""
    np.dot(x.reshape(-1, x.shape[2]), w, out=out.reshape(-1, out.shape[2]))


def classifier(arrays: list[Array]) -> Function:
    """Mean cross entropy of two layers, and gradients for weights and biases."""
    images, w1, b1, w2, b2 = arrays[0], *arrays[2:]
    count, dtype = len(images), images.dtype
    h, back = (np.empty((count, w1.shape[1]), dtype) for _ in range(2))
    scores = np.empty((count, w2.shape[1]), dtype)
    column = np.empty((count, 1), dtype)
    gradients = [np.empty_like(a) for a in (w1, b1, w2, b2)]
    rows, one = np.arange(count), dtype.type(1)
    share = dtype.type(1 / count)

    def run(
        images: Array, labels: Array, w1: Array, b1: Array, w2: Array, b2: Array
    ) -> list[Array]:
        np.dot(images, w1, out=h)
        np.add(h, b1, out=h)
        np.tanh(h, out=h)
        np.dot(h, w2, out=scores)
        np.add(scores, b2, out=scores)
        np.max(scores, axis=1, keepdims=True, out=column)
        np.subtract(scores, column, out=scores)
        chosen = scores[rows, labels].sum()
        np.exp(scores, out=scores)
        np.sum(scores, axis=1, keepdims=True, out=column)
        loss = (np.log(column).sum() - chosen) * share
        np.divide(scores, column, out=scores)
        scores[rows, labels] -= one
        np.multiply(scores, share, out=scores)
        np.dot(h.T, scores, out=gradients[2])
        np.sum(scores, axis=0, out=gradients[3])
        np.dot(scores, w2.T, out=back)
        np.multiply(h, h, out=h)
        np.subtract(one, h, out=h)
        np.multiply(back, h, out=back)
        np.dot(images.T, back, out=gradients[0])
        np.sum(back, axis=0, out=gradients[1])
        return [loss, *gradients]

    return run


def _logsumexp(scores: Array) -> tuple[float, Array]:
    """The logarithm of the sum of exponentials, and its gradient."""
    largest = scores.max()
    weights = np.exp(scores - largest)
    total = weights.sum()
    return float(largest + np.log(total)), weights / total


def mixture(arrays: list[Array], parts: Sequence[slice]) -> Function:
    """The log posterior of W4 and its gradients, the samples in blocks.

    With all factors below each other, one product gives the residuals of a block of samples, and
    one the gradient for the factors.
    """
    k, d = arrays[1].shape
    count, size = len(arrays[3]), parts[0].stop
    factor = np.zeros((k, d, d))
    stacked, flat = factor.reshape(k * d, d), factor.reshape(k, d * d)
    row, column = below_diagonal(d)
    lower, diagonal = row * d + column, flat[:, :: d + 1]
    y, scores, tops = np.empty((size, k * d)), np.empty((size, k)), np.empty((size, 1))
    outer, part = np.empty((k * d, d)), np.empty((k * d, d))
    slopes = [np.empty_like(a) for a in arrays[:3]]

    def block(samples: Array, shift: Array, offset: Array, weight: Array, total: Array) -> float:
        """Add to `outer`, `weight` and `total`; answer with the log likelihood."""
        n = len(samples)
        y_n, s, top = y[:n], scores[:n], tops[:n]
        np.dot(samples, stacked.T, out=y_n)
        np.subtract(y_n, shift, out=y_n)
        cube = y_n.reshape(n, k, d)
        np.einsum("nki,nki->nk", cube, cube, out=s)
        np.multiply(s, -0.5, out=s)
        np.add(s, offset, out=s)
        np.max(s, axis=1, keepdims=True, out=top)
        np.subtract(s, top, out=s)
        np.exp(s, out=s)
        fit = float(top.sum())
        np.sum(s, axis=1, keepdims=True, out=top)
        np.divide(s, top, out=s)
        fit += float(np.log(top).sum())
        np.multiply(cube, s[:, :, None], out=cube)
        np.dot(y_n.T, samples, out=part)
        np.add(outer, part, out=outer)
        weight += s.sum(0)
        total += y_n.sum(0)
        return fit

    def run(alphas: Array, means: Array, factors: Array, samples: Array) -> list[Array]:
        logs, below = factors[:, :d], factors[:, d:]
        scale = np.exp(logs)
        diagonal[...] = scale
        flat[:, lower] = below
        shift = np.matmul(factor, means[:, :, None]).reshape(-1)
        offset = alphas + logs.sum(1)
        weight, total = np.zeros(k), np.zeros(k * d)
        outer.fill(0.0)
        fit = sum(block(samples[b], shift, offset, weight, total) for b in parts)
        norm, share = _logsumexp(alphas)
        prior = 0.5 * (np.vdot(scale, scale) + (below * below).sum())
        total = total.reshape(k, d)
        # The gradient for a factor is total mean^T - outer.
        pull = (total[:, :, None] * means[:, None, :]).reshape(k, d * d)
        pull -= outer.reshape(k, d * d)
        np.subtract(weight, count * share, out=slopes[0])
        np.matmul(total[:, None, :], factor, out=slopes[1][:, None, :])
        np.add((pull[:, :: d + 1] + scale) * scale, weight[:, None], out=slopes[2][:, :d])
        np.add(pull[:, lower], below, out=slopes[2][:, d:])
        return [np.float64(fit - count * norm + prior), *slopes]

    return run


def lstm(arrays: list[Array]) -> Function:
    """Mean squared error of W7 and its gradients.

    A sigmoid is half a tanh of half its argument, so that one tanh serves all gates once the
    weights of three of them are halved. What does not depend on the recurrence is computed for
    all steps at once, the gradients for the weights by one product in the end.
    """
    (steps, batch, n), dtype = arrays[0].shape, arrays[0].dtype
    gates, slopes = (np.empty((steps, batch, 4 * n), dtype) for _ in range(2))
    states, cells = (np.zeros((steps + 1, batch, n), dtype) for _ in range(2))
    tanhs, errors = (np.empty((steps, batch, n), dtype) for _ in range(2))
    fed = np.empty((batch, 4 * n), dtype)
    d_cell, d_state, spare = (np.empty((batch, n), dtype) for _ in range(3))
    half = np.ones(4 * n, dtype)
    half[: 3 * n] = 0.5
    scaled = [np.empty_like(a) for a in arrays[2:]]
    gradients = [np.empty_like(a) for a in arrays[2:]]
    size = steps * batch * n
    entering, forgetting, leaving, candidate = (slice(i * n, (i + 1) * n) for i in range(4))

    def forward(inputs: Array, targets: Array) -> Array:
        w_input, w_state, bias = scaled
        np.dot(inputs.reshape(-1, n), w_input, out=gates.reshape(-1, 4 * n))
        np.add(gates, bias, out=gates)
        for t, g in enumerate(gates):
            if t:
                np.dot(states[t], w_state, out=fed)
                np.add(g, fed, out=g)
            np.tanh(g, out=g)
            sigmoids = g[:, : 3 * n]
            np.multiply(sigmoids, 0.5, out=sigmoids)
            np.add(sigmoids, 0.5, out=sigmoids)
            np.multiply(g[:, entering], g[:, candidate], out=cells[t + 1])
            np.multiply(g[:, forgetting], cells[t], out=spare)
            np.add(cells[t + 1], spare, out=cells[t + 1])
            np.tanh(cells[t + 1], out=tanhs[t])
            np.multiply(g[:, leaving], tanhs[t], out=states[t + 1])
        np.subtract(states[1:], targets, out=errors)
        flat = errors.reshape(-1)
        return np.dot(flat, flat) / dtype.type(size)

    def local_slopes() -> None:
        """Derivatives of the cell, and of the state for the last gate, for each gate's input."""
        i, o, z = (gates[:, :, s] for s in (entering, leaving, candidate))
        d_i, d_f, d_o, d_z = (slopes[:, :, s] for s in (entering, forgetting, leaving, candidate))
        sigmoids, d_sigmoids = gates[:, :, : 3 * n], slopes[:, :, : 3 * n]
        np.multiply(z, z, out=d_z)
        np.subtract(1, d_z, out=d_z)
        np.multiply(d_z, i, out=d_z)
        np.subtract(1, sigmoids, out=d_sigmoids)
        np.multiply(d_sigmoids, sigmoids, out=d_sigmoids)
        np.multiply(d_i, z, out=d_i)
        np.multiply(d_f, cells[:-1], out=d_f)
        np.multiply(d_o, tanhs, out=d_o)
        np.multiply(tanhs, tanhs, out=tanhs)
        np.subtract(1, tanhs, out=tanhs)
        np.multiply(tanhs, o, out=tanhs)

    def backward(w_state: Array) -> None:
        np.multiply(errors, 2 / size, out=errors)
        d_cell.fill(0)
        for t in range(steps - 1, -1, -1):
            if t < steps - 1:
                np.dot(slopes[t + 1], w_state.T, out=d_state)
                np.add(errors[t], d_state, out=errors[t])
            np.multiply(errors[t], tanhs[t], out=spare)
            np.add(d_cell, spare, out=d_cell)
            s = slopes[t]
            early = s[:, : 2 * n].reshape(batch, 2, n)
            np.multiply(early, d_cell[:, None, :], out=early)
            np.multiply(s[:, candidate], d_cell, out=s[:, candidate])
            np.multiply(s[:, leaving], errors[t], out=s[:, leaving])
            np.multiply(d_cell, gates[t][:, forgetting], out=d_cell)

    def run(inputs: Array, targets: Array, *weights: Array) -> list[Array]:
        for w, out in zip(weights, scaled, strict=True):
            np.multiply(w, half, out=out)
        loss = forward(inputs, targets)
        local_slopes()
        backward(weights[1])
        flat = slopes.reshape(-1, 4 * n)
        np.dot(inputs.reshape(-1, n).T, flat, out=gradients[0])
        np.dot(states[:-1].reshape(-1, n).T, flat, out=gradients[1])
        np.sum(flat, axis=0, out=gradients[2])
        return [loss, *gradients]

    return run


def newton(factors: Array) -> list[Any]:
    """The sum of the solutions of x = a cos(x), element by element, and its gradient by a."""
    x, error = np.ones_like(factors), 1.0
    kept = []
    while error > 1e-13:
        sine, cosine = np.sin(x), np.cos(x)
        slope = 1.0 + factors * sine
        change = (x - factors * cosine) / slope
        kept.append((sine, cosine, slope, change))
        x = x - change
        error = np.max(np.abs(change))
    x_bar, factors_bar = np.ones_like(x), np.zeros_like(x)
    for sine, cosine, slope, change in reversed(kept):
        ahead = -x_bar / slope
        below = -ahead * change
        factors_bar += below * sine - ahead * cosine
        x_bar = x_bar + ahead * (1.0 + factors * sine) + below * (factors * cosine)
    return [np.sum(x), factors_bar]
