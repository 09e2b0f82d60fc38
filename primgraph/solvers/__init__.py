"""Solvers as programs: compiled as one kernel, differentiable by what their functions use."""

from primgraph.control.solutions import fixed_point, implicit, root
from primgraph.solvers.broyden import broyden
from primgraph.solvers.krylov import bicgstab, cg, gmres
from primgraph.solvers.least_squares import least_squares
from primgraph.solvers.minimization import minimize
from primgraph.solvers.ode import solve_ivp
from primgraph.solvers.quadrature import quad

__all__ = [
    "bicgstab",
    "broyden",
    "cg",
    "fixed_point",
    "gmres",
    "implicit",
    "least_squares",
    "minimize",
    "quad",
    "root",
    "solve_ivp",
]
