"""Workloads in C as an expert writes them, compiled by the compiler that native kernels have.

Loops are fused, derivatives worked out on paper, products of matrices in tiles that registers hold
(hand_models.c). "strict" keeps to the letter of the arithmetic; "fast" lets the compiler
reassociate, and take the vector functions of the C library. As those of `hand.py`, results are the
function's own arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from cases import ARITHMETIC, DECAY, DIFFUSION, MIXED, Case
from hand_c_build import FLAGS, Built, fresh, one_function
from hand_c_models import atoms, block, classifier, lstm, mixture, pinn
from hand_chains import tanh_polynomial


def variants(case: Case) -> tuple[str, ...]:
    """The ways in which a case is compiled; none where it has not been written."""
    return tuple(FLAGS) if case.workload in _BUILDERS else ()


def build(case: Case, variant: str = "") -> Built:
    """A function for `case`, and its inputs."""
    return _BUILDERS[case.workload](case, variant or "strict")


def _tanh(case: Case, variant: str) -> Built:
    (x,) = case.arrays()
    odd = case["order"] % 2 == 0
    *rest, last = tanh_polynomial(case["order"])[odd::2].tolist()
    value = repr(last)
    for c in reversed(rest):
        value = f"({value} * s + {c!r})"
    text = f"""
    void f(const double *restrict x, double *restrict o) {{
        for (long i = 0; i < {x.size}; i++) {{
            const double t = tanh(x[i]), s = t * t;
            (void)s;
            o[i] = {value}{" * t" if odd else ""};
        }}
    }}"""
    return one_function(text, variant, [x], [np.empty_like(x)])


def _rosenbrock(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    n = case["n"]
    curvature = "1200 * x[i] * x[i] - 400 * x[i + 1]"
    match case["kind"]:
        case "hvp":
            text = f"""
            void f(const double *restrict x, const double *restrict v, double *restrict o) {{
                const long n = {n};
                o[0] = (1200 * x[0] * x[0] - 400 * x[1] + 2) * v[0] - 400 * x[0] * v[1];
                for (long i = 1; i < n - 1; i++)
                    o[i] = ({curvature} + 202) * v[i]
                        - 400 * (x[i] * v[i + 1] + x[i - 1] * v[i - 1]);
                o[n - 1] = 200 * v[n - 1] - 400 * x[n - 2] * v[n - 2];
            }}"""
            return one_function(text, variant, inputs, [np.empty(n)])
        case "sparse":
            text = f"""
            void f(const double *restrict x, double *restrict o) {{
                const long n = {n};
                o[0] = 1200 * x[0] * x[0] - 400 * x[1] + 2, o[1] = -400 * x[0];
                for (long i = 1; i < n - 1; i++) {{
                    o[3 * i - 1] = -400 * x[i - 1];
                    o[3 * i] = {curvature} + 202;
                    o[3 * i + 1] = -400 * x[i];
                }}
                o[3 * n - 4] = -400 * x[n - 2], o[3 * n - 3] = 200;
            }}"""
            return one_function(text, variant, inputs, [np.empty(3 * n - 2)])
    text = f"""
    void f(const double *restrict x, double *restrict o) {{
        const long n = {n}, d = n + 1;
        for (long i = 0; i < n - 1; i++) {{
            o[i * d] = {curvature} + (i ? 202 : 2);
            o[i * d + 1] = o[i * d + n] = -400 * x[i];
        }}
        o[(n - 1) * d] = 200;
    }}"""
    return fresh(text, variant, inputs, (n, n))


def _brusselator(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    n = case["n"]
    c = DIFFUSION * (n + 1) ** 2
    head = f"const long n = {n};\n const double c = {c!r}, b = {DECAY!r};"
    if case["kind"] == "sparse":
        text = f"""
        void f(const double *restrict y, double *restrict o) {{
            {head}
            double *restrict p = o + 4 * n - 2;
            for (long i = 0; i < n; i++) {{
                const double u = y[i], v = y[n + i], q = 2 * u * v;
                o[4 * i] = q - (b + 1 + 2 * c), p[4 * i + 1] = -u * u - 2 * c;
                o[i < n - 1 ? 4 * i + 2 : 4 * n - 3] = u * u, p[i ? 4 * i - 1 : 0] = b - q;
            }}
        }}"""
        return one_function(text, variant, inputs, [np.full(8 * n - 4, c)])
    text = f"""
    void f(const double *restrict y, double *restrict o) {{
        {head}
        const long d = 2 * n + 1;
        for (long i = 0; i < n; i++) {{
            const double u = y[i], v = y[n + i], q = 2 * u * v;
            double *top = o + i * d, *bottom = o + (n + i) * d;
            top[0] = q - (b + 1 + 2 * c), top[n] = u * u;
            bottom[-n] = b - q, bottom[0] = -u * u - 2 * c;
            if (i) top[-1] = bottom[-1] = c;
            if (i < n - 1) top[1] = bottom[1] = c;
        }}
    }}"""
    return fresh(text, variant, inputs, (2 * n, 2 * n))


def _chain(case: Case, variant: str) -> Built:
    (x,) = case.arrays()
    lines, back, last = [], [], "y"
    if case["kind"] == "mixed":
        for k, (a, b, c, d) in enumerate(MIXED):
            # The cosine by the sine: merged with that of the same number it would not be a loop.
            lines.append(f"""
            const double p{k} = {a} * {last}, q{k} = sin(p{k}) + y;
            const double t{k} = tanh({b} * (q{k} * q{k})), v{k} = {d} * exp(t{k} * y - {c});
            const double r{k} = sin(p{k} + 1.5707963267948966);""")
            back.insert(0, f"""
            {{ const double n = w * v{k}, m = {2 * b} * q{k} * (n * y * (1 - t{k} * t{k}));
              z += n * t{k} + m, w = {a} * (m * r{k}); }}""")  # fmt: skip
            last = f"v{k}"
    else:
        for k, (a, b, c, d, e) in enumerate(ARITHMETIC):
            lines.append(f"""
            const double p{k} = {a} * {last} + y, q{k} = {b} * (p{k} * p{k}) - y;
            const double r{k} = q{k} * y + {c}, v{k} = {d} * (r{k} * r{k}) + {e};""")
            back.insert(0, f"""
            {{ const double m = {2 * d} * r{k} * w, n = m * y, l = {2 * b} * p{k} * n;
              z += m * q{k} - n + l, w = {a} * l; }}""")  # fmt: skip
            last = f"v{k}"
    text = f"""
    double f(const double *restrict x, double *restrict g) {{
        double s = 0;
        for (long i = 0; i < {x.size}; i++) {{
            const double y = x[i];{"".join(lines)}
            double w = 1, z = 0;
            s += {last};{"".join(back)}
            g[i] = z + w;
        }}
        return s;
    }}"""
    return one_function(text, variant, [x], [np.empty_like(x)])


def _regression(case: Case, variant: str) -> Built:
    inputs = case.arrays()
    samples = inputs[0]
    count, width = samples.shape
    real, f = ("float", "f") if samples.dtype.itemsize == 4 else ("double", "")
    # Blocks of rows: products, the loss and its slopes as one loop, then the rank update.
    text = f"""
    double f(const {real} *restrict x, const {real} *restrict y, const {real} *restrict w,
             {real} *restrict g) {{
        enum {{ D = {width}, B = 64 }};
        double loss = 0;
        memset(g, 0, D * sizeof *g);
        for (long c = 0; c < {count}; c += B) {{
            const long m = {count} - c < B ? {count} - c : B;
            {real} z[B], q[B], s = 0;
            for (long i = 0; i < m; i++) {{
                {real} t = 0;
                for (long j = 0; j < D; j++) t += x[(c + i) * D + j] * w[j];
                z[i] = t;
            }}
            for (long i = 0; i < m; i++) {{
                const {real} e = exp{f}(-z[i] * y[c + i]);
                z[i] = e, q[i] = -y[c + i] * e / ((1 + e) * {count});
            }}
            for (long i = 0; i < m; i++) s += log1p{f}(z[i]);
            loss += s;
            for (long i = 0; i < m; i++)
                for (long j = 0; j < D; j++) g[j] += q[i] * x[(c + i) * D + j];
        }}
        return loss / {count};
    }}"""
    return one_function(text, variant, inputs, [np.empty_like(inputs[2])])


_BUILDERS: dict[str, Callable[[Case, str], Built]] = {
    "W1": _tanh,
    "W2": pinn,
    "W3": classifier,
    "W4": mixture,
    "W5": _rosenbrock,
    "W6": _brusselator,
    "W7": lstm,
    "W8": _chain,
    "W9": _regression,
    "W10": atoms,
    "W11": block,
    "W12": pinn,
}
