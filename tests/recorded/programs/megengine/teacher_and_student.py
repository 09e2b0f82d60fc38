"""Distillation: a student learns the softened classes of an averaged teacher."""

import copy

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager

STEPS, RATE, MOMENTUM, HEAT = 4, 0.5, 0.8, 2.0


def make_data():
    rng = np.random.default_rng(22)
    x = rng.normal(size=(9, 4)).astype("float32")
    labels = rng.integers(0, 3, 9).astype("int32")
    shapes = ((3, 4), (3,), (3, 4), (3,))
    return x, labels, [rng.normal(0.0, 0.6, s).astype("float32") for s in shapes]


def make_student(weight, bias):
    student = M.Linear(4, 3)
    student.load_state_dict({"weight": weight, "bias": bias})
    return student


def softened(logits):
    return F.softmax(logits / HEAT, axis=-1)


def loss_of(student, teacher, x, labels):
    logits = student(x)
    classes = softened(teacher(x)).detach()
    distillation = -F.sum(classes * F.logsoftmax(logits / HEAT, axis=1), axis=1)
    return F.mean(distillation) * HEAT**2 + F.nn.cross_entropy(logits, labels)


def average(teacher, student):
    for old, new in zip(teacher.parameters(), student.parameters(), strict=True):
        old._reset(MOMENTUM * old + (1 - MOMENTUM) * new)


def main():
    x, labels, (w, b, v, c) = make_data()
    student = make_student(w, b)
    teacher = copy.deepcopy(student)
    teacher.weight[...] = mge.tensor(v)
    teacher.bias[...] = mge.tensor(c)
    x, labels = mge.tensor(x), mge.tensor(labels)
    gm = GradManager().attach(student.parameters())
    losses = []
    for _ in range(STEPS):
        with gm:
            loss = loss_of(student, teacher, x, labels)
            gm.backward(loss)
        for parameter in student.parameters():
            parameter -= RATE * parameter.grad
            parameter.grad = None
        average(teacher, student)
        losses.append(loss.item())
    values, classes = F.topk(softened(teacher(x)), 2)
    return {
        "losses": np.array(losses, "float32"),
        "weight": student.weight.numpy(),
        "teacher": teacher.weight.numpy(),
        "values": values.numpy(),
        "classes": classes.numpy(),
    }


def expected():
    """Softmax and cross entropies with their gradients by hand."""
    x, labels, parameters = make_data()
    w, b, v, c = (p.astype(float) for p in parameters)
    ones = np.eye(3)[labels]

    def probabilities(z):
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    losses = []
    for _ in range(STEPS):
        logits, classes = x @ w.T + b, probabilities((x @ v.T + c) / HEAT)
        soft, hard = probabilities(logits / HEAT), probabilities(logits)
        distillation = -(classes * np.log(soft)).sum(axis=1).mean()
        losses.append(HEAT**2 * distillation - (ones * np.log(hard)).sum(axis=1).mean())
        seed = (HEAT * (soft - classes) + hard - ones) / len(x)
        w, b = w - RATE * seed.T @ x, b - RATE * seed.sum(axis=0)
        v, c = MOMENTUM * v + (1 - MOMENTUM) * w, MOMENTUM * c + (1 - MOMENTUM) * b
    final = probabilities((x @ v.T + c) / HEAT)
    order = np.argsort(-final, axis=1)[:, :2]
    return {
        "losses": np.array(losses, "float32"),
        "weight": w.astype("float32"),
        "teacher": v.astype("float32"),
        "values": np.take_along_axis(final, order, 1).astype("float32"),
        "classes": order.astype("int32"),
    }
