"""Inner loops of the Newton solver where a division could go wrong."""

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples._newton_kernels import gram_block
from owasvm.samples._projected_systems import solve_projected
from owasvm.samples.kernel_operators import GramOperator
from owasvm.samples.operators import ActiveSet, Memory, factorise_definite
from owasvm.solution import Status
from owasvm.solvers import solve
from owasvm.solvers.newton import ConvexTask, cold_start, iterates
from owasvm.solvers.newton._bracket import begin_search, next_step
from owasvm.solvers.newton.core import Inner


def _active_set(signs, n_alone, *, weighted=False):
    """`n_alone` samples on their own, then two tied blocks, one of which gives way a little."""
    n = signs.size
    rng = np.random.default_rng(2)
    root = np.sqrt(rng.uniform(0.5, 2.0, size=n)) if weighted else np.ones(n)
    middle = (n_alone + n) // 2
    ends = [n_alone, middle, n] if n_alone < n else [n]
    return ActiveSet(
        samples=rng.permutation(n + 3)[:n],
        offsets=np.array([0, *ends], dtype=np.int64),
        shrink=np.array([0.0, 1.0, 0.6]),
        root=root,
        tie=signs * root,
        ridge=1e-3,
        imbalance=0.7,
        free=True,
        accuracy=1e-9,
        memory=Memory(),
    )


def _kernel(n):
    root = np.random.default_rng(0).normal(size=(n, 4))
    return root @ root.T


def test_no_constraint_is_left_to_the_factorisation():
    active = _active_set(np.ones(8), 8)
    active.ones[:] = 0.0
    _, _, converged = solve_projected(_kernel(11), np.zeros(11), active, np.ones(8), 1e-9, 50)
    assert not converged


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_alone", [0, 3, 8])
def test_projected_systems_are_solved(n_alone, weighted):
    """By the equations that define them, from the matrix of the system and without it."""
    signs = np.where(np.arange(8) % 3 == 0, -1.0, 1.0)
    active = _active_set(signs, n_alone, weighted=weighted)
    gram = _kernel(11)
    means = GramOperator(gram).means
    linear = np.random.default_rng(1).normal(size=8)
    upper = np.triu(gram_block(gram, means, *active.arrays))
    matrix = upper + np.triu(upper, 1).T
    for known in (None, matrix):
        z, intercept, converged = solve_projected(gram, means, active, linear, 1e-9, 50, known)
        assert converged
        assert active.ones @ z == pytest.approx(-active.imbalance, rel=1e-10)
        left = matrix @ z + linear + intercept * active.ones
        assert np.linalg.norm(left) <= 1e-7 * np.linalg.norm(linear)


def test_tied_blocks_of_one_class_each():
    """Two clusters of many copies: every tied block holds one class, and resists no intercept."""
    gram = np.kron(np.eye(2), np.ones((150, 150)))
    y = np.repeat([1.0, -1.0], 150)
    solution = solve(OWAProblem(y, RankCosts(300, "basic", 0.6, 1e-3), gram=gram))
    assert solution.gap <= 1e-6


def test_a_matrix_that_was_lifted_keeps_its_entries():
    """Rounding has made it indefinite; the factor must be that of nearly the same matrix."""
    root = np.random.default_rng(0).normal(size=(6, 2))
    matrix = root @ root.T
    matrix -= 1e-13 * np.eye(6)
    factor = np.tril(factorise_definite(matrix.copy()))
    np.testing.assert_allclose(factor @ factor.T, matrix, atol=1e-10)


def test_a_lifted_gram_matrix_is_the_centred_one():
    root = np.random.default_rng(1).normal(size=(7, 7))
    gram = root @ root.T
    operator = GramOperator(gram)
    diagonal = np.linspace(0.1, 1.0, 7)
    centred = gram - operator.means - operator.means[:, None] + np.diag(diagonal)
    columns = np.eye(7)
    lifted = operator.lift(diagonal)
    half = lifted.solve_half(columns)
    np.testing.assert_allclose(half.T @ half, np.linalg.inv(centred), rtol=1e-9, atol=1e-12)
    logarithms = np.log(np.linalg.eigvalsh(centred))
    assert lifted.log_pivots().mean() == pytest.approx(logarithms.mean(), abs=1e-10)


class _SlowHinge:
    """The hinge as any other loss: nothing compiled knows it."""

    def __init__(self, hinge):
        self._hinge = hinge

    def __getattr__(self, name):
        return getattr(self._hinge, name)


@pytest.mark.parametrize("alpha", [0.6, 0.2])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_losses_that_nothing_compiled_knows_take_the_same_steps(alpha, C):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=60) > 0.0, 1.0, -1.0)
    problem = OWAProblem(y, RankCosts(60, "basic", alpha, C), gram=np.exp(-0.5 * cdist(X, X) ** 2))
    paths = []
    for wrap in (lambda hinge: hinge, _SlowHinge):
        operator = problem.samples.operator()
        task = ConvexTask(operator, y, wrap(problem.ranked_loss()), np.ones(60))
        steps = itertools.islice(iterates(task, cold_start(task)), 12)
        paths.append([(step.objective, step.gap, step.intercept) for step in steps])
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("linear", [False, True])
def test_a_round_begins_with_the_partition_of_the_last_one(linear):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0.0, 1.0, -1.0)
    data = {"features": X} if linear else {"gram": np.exp(-0.5 * cdist(X, X) ** 2)}
    problem = OWAProblem(y, RankCosts(80), **data)
    task = ConvexTask(problem.samples.operator(), y, problem.ranked_loss(), np.ones(1))
    inner, start = Inner(task), cold_start(task)
    inner.begin(start)
    for _ in range(4):
        inner.look(start, foresees=True)
        inner.advance(start, inner.find_direction(start))
    inner.look(start, foresees=True)
    before = set(np.flatnonzero(inner.point.block >= 0))
    start.dual = inner.take_dual()
    start.penalty *= 100.0
    inner.begin(start)
    inner.look(start, foresees=True)
    now = set(np.flatnonzero(inner.point.block >= 0))
    assert before != now
    inner.advance(start, inner.find_direction(start))
    # Linear models with many samples take fewer steps with what they see.
    assert start.n_active == len(now if linear else before)


def test_steps_along_tied_blocks_lose_no_digits():
    """Nothing resists there but the ridge, which large penalties leave little of."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.3, size=(60, 2))
    y = np.where(X[:, 0] + 3.0 * X.std() * rng.normal(size=60) > np.median(X[:, 0]), 1.0, -1.0)
    costs = RankCosts(60, "superquantile", 0.11, 1500.0)
    problem = OWAProblem(y, costs, gram=np.exp(-0.5 * cdist(X, X) ** 2))
    assert solve(problem, "newton", tol=1e-8).status is Status.OPTIMAL


def test_a_line_search_ends_where_slopes_are_no_numbers():
    goes_on, state = True, begin_search(-1.0, False)
    n_evaluations = 0
    while goes_on:
        goes_on, state = next_step(state, np.nan, 0.2, -0.5)
        n_evaluations += 1
    assert n_evaluations <= 50
