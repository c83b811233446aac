"""Inner loops of the Newton solver where a division could go wrong."""

import numpy as np

from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples._newton_kernels import projected_conjugate_gradients
from owasvm.solvers import solve


def _system(constraint):
    n = constraint.size
    rng = np.random.default_rng(0)
    root = rng.normal(size=(n, 3))
    return (
        np.ascontiguousarray(root @ root.T),
        np.zeros(n),
        np.ones(n),
        np.ones(n),
        np.arange(n),
        np.array([0, n], dtype=np.int64),
        np.ones(1),
        1e-3,
        rng.normal(size=n),
        constraint,
        0.0,
        1e-8,
        50,
    )


def test_no_constraint_is_left_to_the_factorisation():
    _, _, converged = projected_conjugate_gradients(*_system(np.zeros(8)))
    assert not converged


def test_the_constraint_holds():
    constraint = np.linspace(-1.0, 1.0, 8)
    z, _, _ = projected_conjugate_gradients(*_system(constraint))
    assert abs(constraint @ z) <= 1e-12 * np.linalg.norm(z)


def test_tied_blocks_of_one_class_each():
    """Two clusters of many copies: every tied block holds one class, and resists no intercept."""
    gram = np.kron(np.eye(2), np.ones((150, 150)))
    y = np.repeat([1.0, -1.0], 150)
    solution = solve(OWAProblem(y, RankCosts(300, "basic", 0.6, 1e-3), gram=gram))
    assert solution.gap <= 1e-6
