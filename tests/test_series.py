"""Fits from a known solution: the compiled loop takes the steps that the parts take one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from owasvm.certificate import judge
from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples.kernel_operators import GramOperator
from owasvm.solution import Status
from owasvm.solvers import solve
from owasvm.solvers.newton import ConvexTask, cold_start, iterates, series, start_from
from owasvm.solvers.newton.series import Look, Series
from owasvm.solvers.newton.stopping import StoppingRule, project_balanced


def _draw(n_samples, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    y = np.where(X[:, 0] + noise * rng.normal(size=n_samples) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y


def _problem(X, y, C, family="basic", alpha=0.6, width=0.5, mass=None):
    gram = np.exp(-width * cdist(X, X) ** 2)
    return OWAProblem(y, RankCosts(y.size, family, alpha, C, mass), gram=gram)


def _task(problem):
    return ConvexTask(problem.samples.operator(), problem.y, problem.ranked_loss(), np.ones(1))


def _watch(problem, known, n_looks):
    """What both loops yield, look by look."""
    seen = []
    for compiled in (False, True):
        task = _task(problem)
        start = cold_start(task) if known is None else start_from(task, known)
        steps = iterates(task, start)
        if compiled:
            found = Series.of(task)
            assert found is not None
            steps = found.iterates(start, lambda: Look(np.inf), 1000, is_watched=True)
        seen.append(
            [
                (
                    at.n_iter,
                    at.penalty,
                    at.objective,
                    at.gap,
                    at.intercept,
                    at.n_active,
                    at.n_solved,
                    at.dual.copy(),
                    at.slack.copy(),
                    at.w.scores.copy(),
                )
                for at in itertools.islice(steps, n_looks)
            ]
        )
    return seen


@pytest.mark.parametrize(
    ("family", "alpha"),
    [("basic", 0.6), ("uniform", None), ("superquantile", 0.3), ("quadratic", 0.3)],
)
@pytest.mark.parametrize("large", [100, 1])
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("copies", [False, True])
def test_both_loops_take_the_same_steps(family, alpha, large, warm, copies, monkeypatch):
    """With small systems solved in the loop, and with all of them left to the operator."""
    monkeypatch.setattr(series, "LARGE_SYSTEM", large)
    X, y = _draw(80)
    mass = np.random.default_rng(1).integers(1, 5, size=80).astype(float) if copies else None
    known = solve(_problem(X, y, 1.0, family, alpha, mass=mass), "newton") if warm else None
    plain, compiled = _watch(_problem(X, y, 4.0, family, alpha, mass=mass), known, 12)
    for n_looks, (one, other) in enumerate(zip(plain, compiled, strict=True)):
        if one[3] <= 1e-12 * one[2]:
            # From here on it is rounding that decides.
            assert n_looks >= 1
            break
        assert one[0] == other[0]
        assert one[5] == other[5]
        for value, same in zip(one[1:5], other[1:5], strict=True):
            assert same == pytest.approx(value, rel=1e-6, abs=1e-9 * abs(one[2]))
        for value, same in zip(one[6:], other[6:], strict=True):
            np.testing.assert_allclose(same, value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("large", [100, 1])
def test_what_nobody_looks_at_changes_no_step(large, monkeypatch):
    """Losses are left out where no gap is near, and known where somebody looks."""
    monkeypatch.setattr(series, "LARGE_SYSTEM", large)
    monkeypatch.setattr(series, "_PACE", 1000)
    X, y = _draw(120, noise=2.0)
    problem = _problem(X, y, 8.0)
    known = solve(_problem(X, y, 1.0), "newton")
    seen = {}
    for is_watched in (True, False):
        task = _task(problem)
        start = start_from(task, known)
        found = Series.of(task)
        looks = found.iterates(start, lambda: Look(1e-7), 1000, is_watched=is_watched)
        for at in looks:
            seen[is_watched, at.n_iter, at.penalty] = at.objective, at.gap
            if at.gap <= 1e-7 * at.objective:
                break
    unwatched = {where: what for where, what in seen.items() if not where[0]}
    assert len(unwatched) < len(seen) - len(unwatched)
    for (_, n_iter, penalty), what in unwatched.items():
        assert seen[True, n_iter, penalty] == pytest.approx(what, rel=1e-9)


@given(
    n_samples=st.integers(2, 60),
    seed=st.integers(0, 1000),
    family=st.sampled_from(["basic", "uniform", "superquantile"]),
    exponents=st.tuples(st.integers(-12, 12), st.integers(-12, 12)),
    kind=st.sampled_from(["plain", "ties", "copies", "constant", "lonely", "huge", "tiny"]),
)
# w = 0 is better than what is found, within the tolerance.
@example(n_samples=46, seed=1, family="superquantile", exponents=(-6, -8), kind="copies")
def test_a_known_solution_changes_no_optimum(n_samples, seed, family, exponents, kind):
    X, y = _draw(n_samples, seed)
    if kind == "ties":
        X = np.round(X)
    elif kind == "copies":
        X = X[np.arange(n_samples) // 2]
    elif kind == "constant":
        X[:] = 1.0
    elif kind == "lonely":
        y[:] = -1.0
        y[-1] = 1.0
    scale = {"huge": 1e6, "tiny": 1e-6}.get(kind, 1.0)
    gram = scale * np.exp(-0.5 * cdist(X, X) ** 2)
    one, other = (
        OWAProblem(y, RankCosts(n_samples, family, 0.4, 2.0**exponent / scale), gram=gram)
        for exponent in exponents
    )
    warm = solve(other, "newton", warm_start=solve(one, "newton", in_series=True))
    cold = solve(other, "newton")
    assert warm.status is Status.OPTIMAL
    assert warm.lower_bound <= cold.objective * (1.0 + 1e-12)
    assert warm.objective == pytest.approx(cold.objective, rel=3e-6, abs=3e-6)
    # Its own coefficients make the classifier, and a bound; the one that was found may be better.
    found = judge(other, warm.dual, warm.intercept)
    assert found.objective == pytest.approx(warm.objective, rel=1e-6, abs=1e-6)
    assert found.lower_bound <= cold.objective * (1.0 + 1e-12)


def test_large_systems_go_to_the_operator(monkeypatch):
    monkeypatch.setattr(series, "LARGE_SYSTEM", 100)
    X, y = _draw(300, noise=3.0)
    sizes = []
    newton_step = GramOperator.newton_step

    def note(self, residual, active):
        sizes.append(active.samples.size)
        return newton_step(self, residual, active)

    known = solve(_problem(X, y, 0.01, "uniform", None, 0.1), "newton")
    monkeypatch.setattr(GramOperator, "newton_step", note)
    found = solve(_problem(X, y, 50.0, "uniform", None, 0.1), "newton", warm_start=known)
    assert found.status is Status.OPTIMAL
    assert sizes
    assert min(sizes) >= 100


def test_a_matrix_without_a_factor_goes_to_the_operator(monkeypatch):
    """Rounding may leave none; the operator lifts the matrix."""
    X, y = _draw(60)
    problem = _problem(X, y, 2.0)
    task = _task(problem)
    task.operator.gram = task.operator.gram - 10.0 * np.eye(60)
    called = []
    monkeypatch.setattr(
        GramOperator,
        "newton_step",
        lambda _, residual, active: called.append(active) or (residual, 0.0),
    )
    found = Series.of(task)
    assert found is not None
    start = start_from(task, solve(_problem(X, y, 1.0), "newton"))
    looks = found.iterates(start, lambda: Look(0.0), 1000, is_watched=False)
    # Before the multiplier moves and behind it, at the system, and behind that.
    for _ in itertools.islice(looks, 4):
        pass
    assert called


def test_numbers_that_overflow_end_the_loop():
    X, y = _draw(30)
    task = _task(_problem(X, y, 2.0))
    found = Series.of(task)
    assert found is not None
    start = cold_start(task)
    start.intercept = np.nan
    assert np.isnan(next(found.iterates(start, lambda: Look(0.0), 1000, is_watched=False)).gap)


def test_somebody_looks_every_few_steps_whatever_the_systems(monkeypatch):
    """At the clock, and at how much has been spent: else another method would never take over."""
    monkeypatch.setattr(series, "LARGE_SYSTEM", 1)
    X, y = _draw(60, noise=2.0)
    task = _task(_problem(X, y, 8.0))
    found = Series.of(task)
    assert found is not None
    start = start_from(task, solve(_problem(X, y, 1.0), "newton"))
    looks = itertools.islice(found.iterates(start, lambda: Look(0.0), 1000, is_watched=False), 5)
    steps = [look.n_iter for look in looks]
    assert max(np.diff([0, *steps])) <= series._PACE


def test_those_who_watch_see_every_step_and_can_stop():
    X, y = _draw(200, noise=2.0)
    known = solve(_problem(X, y, 1.0), "newton")
    seen = []
    whole = solve(
        _problem(X, y, 8.0), "newton", warm_start=known, callback=lambda info: seen.append(info)
    )
    steps = [info["n_iter"] for info in seen]
    assert np.diff(steps).max() == 1
    assert steps[-1] >= whole.n_iter - 1 > 3
    stopped = solve(
        _problem(X, y, 8.0),
        "newton",
        warm_start=known,
        callback=lambda info: info["n_iter"] < 2,
    )
    assert stopped.status is Status.INTERRUPTED
    assert stopped.n_iter == 2
    assert stopped.lower_bound <= whole.objective <= stopped.objective


def test_limits_hold():
    X, y = _draw(200, noise=2.0)
    known = solve(_problem(X, y, 1.0), "newton")
    short = solve(_problem(X, y, 8.0), "newton", warm_start=known, max_iter=3)
    assert short.status is Status.ITERATION_LIMIT
    assert short.n_iter <= 3
    brief = solve(_problem(X, y, 8.0), "newton", warm_start=known, time_limit=1e-9)
    assert brief.status is Status.TIME_LIMIT


def test_other_tasks_are_left_alone():
    X, y = _draw(30)
    problem = _problem(X, y, 1.0)
    assert Series.of(_task(problem)) is not None
    linear = OWAProblem(y, problem.costs, features=X)
    weighted = OWAProblem(
        y,
        RankCosts(30, "basic", 0.6, 1.0, sample_weight=np.linspace(1.0, 2.0, 30)),
        gram=problem.samples.gram_matrix(),
    )
    squared = OWAProblem(
        y, problem.costs, gram=problem.samples.gram_matrix(), loss="squared_hinge"
    )
    for other in (linear, weighted, squared):
        assert Series.of(_task(other)) is None
    fixed = _task(problem)
    fixed.fixed_intercept = 0.0
    assert Series.of(fixed) is None


def test_single_fits_take_the_loop_once_it_is_compiled(monkeypatch):
    """Nobody waits for it before single fits have taken some time without it."""
    taken = []
    iterates_of = Series.iterates
    monkeypatch.setattr(
        Series,
        "iterates",
        lambda *args, **options: taken.append(1) or iterates_of(*args, **options),
    )
    X, y = _draw(60)
    is_compiled = False
    monkeypatch.setattr(series, "is_compiled", lambda _: is_compiled)
    monkeypatch.setattr(series._Demand, "seconds", 0.0)
    plain = solve(_problem(X, y, 2.0), "newton")
    assert not taken
    assert 0.0 < series._Demand.seconds < series._WORTH_COMPILING
    series._Demand.seconds = series._WORTH_COMPILING
    demanded = solve(_problem(X, y, 2.0), "newton")
    assert len(taken) == 1
    assert series._Demand.seconds == series._WORTH_COMPILING
    series._Demand.seconds, is_compiled = 0.0, True
    compiled = solve(_problem(X, y, 2.0), "newton")
    assert len(taken) == 2
    for found in (plain, demanded, compiled):
        assert found.status is Status.OPTIMAL
        assert found.objective == pytest.approx(plain.objective, rel=1e-10)


def test_large_systems_of_wide_kernels_are_solved_by_few_columns():
    """A superquantile of classes that overlap ties most of the samples."""
    X, y = _draw(600, noise=3.0)
    problem = _problem(X, y, 1.0, "superquantile", 0.3, width=0.01)
    task = _task(problem)
    assert task.operator.is_gram
    assert not task.condense(100)
    assert task.condense(500)
    assert 50 < task.operator.n_columns <= 200
    assert not task.condense(500)
    coef = np.random.default_rng(0).normal(size=600)
    coef -= coef.mean()
    scores = GramOperator(problem.gram).vector(coef.copy()).scores
    np.testing.assert_allclose(task.operator.vector(coef).scores, scores, atol=1e-8)
    found = solve(problem, "newton")
    known = solve(problem, "newton", tol=1e-9)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(known.objective, rel=2e-6)


def test_kernels_of_very_few_columns_are_condensed_at_once():
    X, y = _draw(300)
    problem = OWAProblem(y, RankCosts(y.size, "basic", 0.6, 1.0), gram=1.0 + X @ X.T)
    assert _task(problem).operator.n_columns == 4


def test_a_narrow_kernel_has_no_few_columns():
    X, y = _draw(300)
    task = _task(_problem(X, y, 1.0, width=50.0))
    assert not task.condense(300)
    indefinite = GramOperator(np.diag([1.0, -1.0, 1.0, 1.0, 1.0, 1.0]))
    assert indefinite.condense(6) is indefinite


def _find_whole_steps(task, start, below, *, compiled):
    """Whole steps that may prove a gap, and the steps that they are beside."""
    if compiled:
        found = Series.of(task)
        steps = found.iterates(start, lambda: Look(np.inf, None, below), 1000, is_watched=True)
    else:
        steps = iterates(task, start, lambda: below)
    seen, last = [], -1
    for at in itertools.takewhile(lambda at: at.n_iter < 60 and at.gap > 1e-9, steps):
        if at.is_whole_step:
            assert at.n_iter == last + 1
            seen.append(at)
        else:
            last = at.n_iter
    return seen


@pytest.mark.parametrize("family", ["basic", "superquantile", "max-entropy"])
@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("large", [100, 1])
def test_both_loops_find_the_same_whole_steps(family, copies, large, monkeypatch):
    monkeypatch.setattr(series, "LARGE_SYSTEM", large)
    X, y = _draw(80, noise=2.0)
    mass = np.random.default_rng(1).integers(1, 5, size=80).astype(float) if copies else None
    problem = _problem(X, y, 2.0, family, 0.7, mass=mass)
    both = []
    for compiled in (False, True):
        task = _task(problem)
        both.append(_find_whole_steps(task, cold_start(task), 1e-4, compiled=compiled))
    plain, compiled = both
    assert len(plain) == len(compiled) > 0
    for one, other in zip(plain, compiled, strict=True):
        assert one.n_iter == other.n_iter
        assert other.objective == pytest.approx(one.objective, rel=1e-9)
        assert other.gap == pytest.approx(one.gap, rel=1e-3, abs=1e-8 * one.objective)
        np.testing.assert_allclose(other.w.scores, one.w.scores, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.dual, one.dual, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.slack, one.slack, rtol=1e-6, atol=1e-6)


def test_a_whole_step_is_what_its_coefficients_make_of_it():
    """Objective and gap are those that a certificate finds, which knows nothing of the loop."""
    X, y = _draw(150, noise=1.5)
    problem = _problem(X, y, 3.0)
    task = _task(problem)
    found = _find_whole_steps(task, cold_start(task), 1e-5, compiled=False)
    assert found
    for whole in found:
        shift = task.operator.intercept_shift(whole.w.coef)
        dual = project_balanced(task, task.dual_of(whole.w))
        proof = judge(problem, dual, whole.intercept - shift)
        assert whole.gap <= 1e-5 * whole.objective
        assert proof.objective == pytest.approx(whole.objective, rel=1e-5)
        assert proof.lower_bound == pytest.approx(whole.objective - whole.gap, rel=1e-5)


@pytest.mark.parametrize("is_linear", [False, True])
def test_whole_steps_prove_what_shortened_ones_do_not_yet(is_linear, monkeypatch):
    """The same fits with and without: fewer steps, the same optimum."""
    steps = []
    for tries in (True, False):
        if not tries:
            monkeypatch.setattr(StoppingRule, "_try_whole_step", lambda *_: False)
        monkeypatch.setattr(Series, "is_at_hand", staticmethod(lambda: not is_linear))
        found = []
        for seed in range(8):
            X, y = _draw(300, seed, noise=1.5)
            costs = RankCosts(y.size, "basic", 0.6, 1.0)
            gram = np.exp(-0.5 * cdist(X, X) ** 2)
            data = {"features": X} if is_linear else {"gram": gram}
            found.append(solve(OWAProblem(y, costs, **data), "newton"))
        steps.append(found)
    assert sum(one.n_iter for one in steps[0]) < 0.95 * sum(one.n_iter for one in steps[1])
    for one, other in zip(*steps, strict=True):
        assert one.status is Status.OPTIMAL
        assert max(one.lower_bound, other.lower_bound) <= min(one.objective, other.objective)
