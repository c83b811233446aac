"""The splitting method: its fixed point, its memory, and its turn within a fit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from owasvm.certificate import objective
from owasvm.grouping import assign_costs
from owasvm.problem import OWAProblem
from owasvm.samples import Vector
from owasvm.solution import Status
from owasvm.solvers import solve, splitting
from owasvm.solvers.clock import Clock
from owasvm.solvers.contract import Settings
from owasvm.solvers.newton import ConvexTask, cold_start, iterates, penalty, turns
from owasvm.solvers.newton.effort import Effort
from owasvm.solvers.newton.rescue import Rescue
from owasvm.solvers.newton.series import Look, Series
from owasvm.solvers.splitting import Memory, Splitting


def _draw(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 4))
    y = np.where(X[:, 0] + 1.5 * rng.normal(size=n_samples) > 0.0, 1.0, -1.0)
    y[:2] = -1.0, 1.0
    return X, y, rng.integers(1, 4, size=n_samples).astype(float)


def _problem(
    n_samples,
    family="basic",
    alpha=0.3,
    C=1.0,
    weighted=False,
    ranks="all",
    loss="hinge",
    width=0.5,
):
    X, y, mass = _draw(n_samples)
    mass = mass if weighted else None
    costs = assign_costs(y, family, alpha, C, mass, ranks=ranks, groups=None)
    gram = np.exp(-width * cdist(X, X) ** 2)
    return OWAProblem(y, costs, gram=gram, loss=loss)


def _task(problem):
    operator = problem.samples.operator()
    return ConvexTask(operator, problem.y, problem.ranked_loss(), np.ones(1))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"family": "uniform", "alpha": None},
        {"family": "superquantile", "alpha": 0.3},
        {"weighted": True},
        {"ranks": "class"},
        {"loss": "squared_hinge"},
        {"C": 50.0},
    ],
    ids=str,
)
def test_the_fixed_point_is_the_solution(options):
    problem = _problem(70, **options)
    known = solve(problem, "newton", tol=1e-10)
    task = _task(problem)
    method = Splitting(
        task.operator, problem.y, task.loss, np.ones(1), max(30.0 * task.unit_penalty, 1.0)
    )
    for n_done, _ in enumerate(method.iterate(np.ones(70), np.zeros(70)), start=1):
        if n_done == 600:
            break
    # What it holds fits together: coefficients, scores, slacks, a point of the dual set.
    assert method.coef.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(method.scores, task.operator.vector(method.coef).scores, atol=1e-8)
    decisions = method.scores + method.intercept
    np.testing.assert_allclose(method.slack, 1.0 - problem.y * decisions, atol=1e-9)
    assert problem.ranked_loss().excess(np.maximum(method.point.dual, 0.0)) <= 1.0 + 1e-9
    np.testing.assert_allclose(method.point.dual, problem.y * method.coef, atol=1e-4)
    squared = float(method.coef @ method.scores)
    value, _ = objective(problem, squared, method.scores, method.intercept)
    assert value == pytest.approx(known.objective, rel=1e-7)


@pytest.mark.parametrize(
    "options",
    [{}, {"weighted": True}, {"C": 50.0}, {"ranks": "class"}],
    ids=str,
)
def test_an_inverse_in_single_precision_leads_to_the_same_point(options, monkeypatch):
    """What it leaves of a side is found by the kernel itself, and mended."""
    monkeypatch.setattr(splitting, "_MANY_SAMPLES", 1)
    problem = _problem(90, **options)
    known = solve(problem, "newton", tol=1e-10)
    task = _task(problem)
    rho = max(30.0 * task.unit_penalty, 1.0)
    method = Splitting(task.operator, problem.y, task.loss, np.ones(1), rho)
    assert method._system.is_single
    steps = method.iterate(np.ones(90), np.zeros(90))
    for _ in range(60):
        for _ in range(10):
            next(steps)
        method.correct()
        scores = task.operator.vector(method.coef.copy()).scores
        np.testing.assert_allclose(method.scores, scores, atol=1e-9 * np.abs(scores).max())
    assert method.coef.sum() == pytest.approx(0.0, abs=1e-9)
    slack = 1.0 - problem.y * (method.scores + method.intercept)
    np.testing.assert_allclose(method.slack, slack, atol=1e-12)
    squared = float(method.coef @ method.scores)
    value, _ = objective(problem, squared, method.scores, method.intercept)
    assert value == pytest.approx(known.objective, rel=1e-7)


def test_squared_deviations_are_left_to_double_precision(monkeypatch):
    monkeypatch.setattr(splitting, "_MANY_SAMPLES", 1)
    task = _task(_problem(60, loss="squared_hinge"))
    method = Splitting(task.operator, task.y, task.loss, np.ones(1), 30.0 * task.unit_penalty)
    assert not method._system.is_single


@pytest.mark.parametrize("scale", [1.0, 1e-45, 1e45])
def test_what_single_precision_cannot_invert_is_inverted_in_double(scale, monkeypatch):
    """A smooth kernel and a large penalty; numbers that are too small or too large for it."""
    monkeypatch.setattr(splitting, "_MANY_SAMPLES", 1)
    X, y, _ = _draw(60)
    gram = scale * np.exp(-0.01 * cdist(X, X) ** 2)
    task = _task(OWAProblem(y, assign_costs(y, "basic", 0.3, 1.0 / scale, None), gram=gram))
    rho = 1e9 if scale == 1.0 else 30.0 * task.unit_penalty
    with np.errstate(all="ignore"):
        method = Splitting(task.operator, y, task.loss, np.ones(1), rho)
    assert not method._system.is_single
    steps = method.iterate(np.ones(60), np.zeros(60))
    next(steps)
    method.correct()
    scores = task.operator.vector(method.coef.copy()).scores
    np.testing.assert_allclose(method.scores, scores, atol=1e-5 * np.abs(scores).max())


def test_the_memory_solves_linear_equations():
    """Four unknowns, four differences: exact, where the plain iteration takes hundreds."""
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    matrix = basis @ np.diag([0.99, 0.9, 0.5, -0.7]) @ basis.T
    side = rng.normal(size=4)
    known = np.linalg.solve(np.eye(4) - matrix, side)
    memory, v = Memory(1.0, 4, depth=5), np.zeros(4)
    for _ in range(8):
        v = memory.advance(v, matrix @ v + side - v)
    np.testing.assert_allclose(v, known, rtol=1e-6)


def test_the_memory_bears_changes_that_vanish():
    memory, v = Memory(1.0, 3), np.ones(3)
    for _ in range(15):
        v = memory.advance(v, np.zeros(3))
    np.testing.assert_array_equal(v, np.ones(3))


def _set_shares(monkeypatch, share):
    for name in ("_SHARE", "_SHARE_WITH_STEEP_WEIGHTS", "_REST"):
        monkeypatch.setattr(turns, name, share)


@pytest.fixture
def at_once(monkeypatch):
    """A turn as soon as there is a step."""
    _set_shares(monkeypatch, 0.0)


def _count_turns(monkeypatch):
    seen = []
    describe = turns.SplittingTurn._describe
    monkeypatch.setattr(
        turns.SplittingTurn,
        "_describe",
        lambda *args: seen.append(1) or describe(*args),
    )
    return seen


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    "options", [{}, {"weighted": True}, {"ranks": "class"}, {"C": 100.0}], ids=str
)
def test_a_turn_within_a_fit_ends_at_the_optimum(options, monkeypatch):
    problem = _problem(300, alpha=0.2, width=1.0, **options)
    seen = _count_turns(monkeypatch)
    found = solve(problem, "newton")
    assert seen
    assert found.status is Status.OPTIMAL
    _set_shares(monkeypatch, np.inf)
    assert found.objective == pytest.approx(solve(problem, "newton").objective, rel=2e-6)


@pytest.mark.parametrize("seed", [29, 31])
def test_squared_deviations_of_heavy_tails_reach_their_gap(seed):
    """1,000 Newton steps missed it, and no interior points are for this loss."""
    rng = np.random.default_rng(seed)
    X = rng.pareto(1.5, (150, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.where(rng.random(150) < 0.5, 1.0, -1.0)
    costs = assign_costs(y, "max-entropy", 0.92, 50.0, None, ranks="all", groups=None)
    gram = np.exp(-0.05 * cdist(X, X) ** 2)
    found = solve(OWAProblem(y, costs, gram=gram, loss="squared_hinge"), "newton")
    assert found.status is Status.OPTIMAL


@pytest.mark.usefixtures("at_once")
def test_newton_steps_do_not_go_on_from_far_out(monkeypatch):
    """The gap of a point out of balance hides what its intercept costs: 1,000 steps from there."""
    problem = _problem(60)
    describe = turns.SplittingTurn._describe

    def describe_far_out(self, method, n_iter):
        found = describe(self, method, n_iter)
        found.intercept += 1e9
        found.slack = found.slack - 1e9 * problem.y
        found.objective += 1e9
        found.gap *= 1e-6
        return found

    monkeypatch.setattr(turns.SplittingTurn, "_describe", describe_far_out)
    found = solve(problem, "newton")
    assert found.status is Status.OPTIMAL
    assert found.n_iter <= 60


@pytest.mark.usefixtures("at_once")
def test_a_turn_that_leads_nowhere_costs_nothing_but_time(monkeypatch):
    problem = _problem(200, alpha=0.2)
    seen = _count_turns(monkeypatch)
    monkeypatch.setattr(turns, "_MAX_ITERATIONS", 0)
    monkeypatch.setattr(turns, "_SHARE_OF_OTHER", 0.0)
    found = solve(problem, "newton")
    assert len(seen) == 1
    assert found.status is Status.OPTIMAL


def test_a_turn_looks_at_the_clock(monkeypatch):
    problem = _problem(100)
    task = _task(problem)
    start = cold_start(task)
    start.slack = np.ones(100)
    turn = turns.SplittingTurn(task, Effort(task, 1e-6), 1e-12)
    monkeypatch.setattr(turns, "_PER_SECOND", 1.0)
    assert not list(turn.iterates(start, Clock.start(Settings(time_limit=100.0))))
    monkeypatch.undo()
    # Time for the inverse, and not for all that follows.
    clock = Clock.start(Settings(time_limit=1000.0))
    looks = turn.iterates(start, clock)
    next(looks)
    assert turn.is_at_work
    clock.begun -= 2000.0
    assert not list(looks)
    assert not turn.is_at_work


def _start(task):
    start = cold_start(task)
    start.slack = np.ones(task.y.size)
    return start


def _turn_of(problem):
    task = _task(problem)
    return turns.SplittingTurn(task, Effort(task, 1e-6), 1e-6)


@pytest.mark.parametrize("width", [0.003, 0.1, 50.0])
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_the_penalty_goes_by_the_eigenvalues_of_the_kernel(width, C):
    turn = _turn_of(_problem(120, width=width, C=C))
    task = turn._task
    kernel = np.array([task.operator.vector(row).scores for row in np.eye(120)])
    eigenvalues = np.linalg.eigvalsh(kernel)
    lifted = eigenvalues + penalty._LEAST_EIGENVALUE * eigenvalues.mean()
    share = penalty._LEAST_PENALTY if C < 1.0 else penalty._MOST_PENALTY
    expected = share / np.exp(np.log(lifted).mean())
    assert turn._choose_penalty(_start(task)) == pytest.approx(expected, rel=1e-6)


def test_the_penalty_knows_no_units():
    """Of the kernel, nor of sample weights, where costs are those of as many copies."""
    X, y, mass = _draw(90)
    gram = np.exp(-0.1 * cdist(X, X) ** 2)
    costs = assign_costs(y, "basic", 0.3, 1e-6, None, ranks="all", groups=None)

    def choose(costs, gram):
        turn = _turn_of(OWAProblem(y, costs, gram=gram))
        return turn._choose_penalty(_start(turn._task))

    assert 100.0 * choose(costs, 100.0 * gram) == pytest.approx(choose(costs, gram))
    found = [
        choose(assign_costs(y, "basic", 0.3, 1e-6, unit * mass, ranks="all", groups=None), gram)
        for unit in (1.0, 10.0)
    ]
    assert 10.0 * found[1] == pytest.approx(found[0])


@pytest.mark.parametrize("unit", [1.0, 10.0])
def test_the_penalty_follows_what_is_seen_where_weights_are_not_steep(unit):
    """What dual points vary by per unit of slack, per unit of sample weight, within limits."""
    X, y, mass = _draw(90)
    costs = assign_costs(y, "basic", 0.6, 1e-6, unit * mass, ranks="all", groups=None)
    task = _task(OWAProblem(y, costs, gram=np.exp(-0.1 * cdist(X, X) ** 2)))
    iterate = _start(task)
    usual = penalty.choose_penalty(task, iterate, is_steep=True)
    iterate.slack = np.linspace(-1.0, 1.0, 90)
    for share, expected in ((0.01, penalty._LEAST_SHARE), (0.8, 0.8), (9.0, penalty._MOST_SHARE)):
        iterate.dual = share * usual * unit * mass * iterate.slack
        assert penalty.choose_penalty(task, iterate, is_steep=True) == usual
        found = penalty.choose_penalty(task, iterate, is_steep=False)
        assert found == pytest.approx(expected * usual)


@pytest.mark.parametrize(
    ("objectives", "bounds", "expected"),
    [
        # Too few of them.
        ([9.0, 5.0, 3.0], [0.0, 0.0, 0.0], 1.0),
        # The bound does not move any more, the classifier does not, both do, neither does.
        ([9.0, 5.0, 3.0, 2.0], [0.0, 0.9, 1.0, 1.0], 8.0),
        ([9.0, 1.2, 1.1, 1.1], [-9.0, -2.0, 0.0, 1.0], 0.125),
        ([9.0, 5.0, 3.0, 2.0], [-9.0, -5.0, -3.0, -2.0], 1.0),
        ([9.0, 5.0, 5.0, 5.0], [1.0, 1.0, 1.0, 1.0], 1.0),
        # What counts is the best one until then.
        ([9.0, 2.0, 7.0, 3.0], [0.0, 1.0, 0.0, 0.5], 1.0),
    ],
)
def test_the_penalty_changes_where_one_side_lags_behind(objectives, bounds, expected):
    lags = penalty.Lags()
    for pair in zip(objectives, bounds, strict=True):
        lags.note(*pair)
    assert lags.find_factor() == expected


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e200])
def test_a_turn_bears_numbers_that_overflow(scale):
    X, y, _ = _draw(60)
    costs = assign_costs(y, "basic", 0.3, 1.0, None, ranks="all", groups=None)
    gram = scale * np.exp(-0.5 * cdist(X, X) ** 2)
    task = _task(OWAProblem(y, costs, gram=gram))
    start = cold_start(task)
    start.slack = np.ones(60)
    turn = turns.SplittingTurn(task, Effort(task, 1e-6), 1e-6)
    for found in turn.iterates(start, Clock.start(Settings())):
        assert np.isfinite(found.objective)


def test_iterates_of_a_turn_describe_themselves():
    problem = _problem(100)
    task = _task(problem)
    start = cold_start(task)
    start.slack = np.ones(100)
    turn = turns.SplittingTurn(task, Effort(task, 1e-6), 1e-6)
    for found in turn.iterates(start, Clock.start(Settings())):
        if found.is_final:
            # A repaired one is described by what it proves.
            continue
        w = task.operator.vector(found.w.coef)
        slack = 1.0 - problem.y * (w.scores + found.intercept)
        np.testing.assert_allclose(found.slack, slack, atol=1e-9)
        value = 0.5 * float(w.coef @ w.scores) + task.loss.value(slack)
        assert found.objective == pytest.approx(value)
        apart = Vector(problem.y * found.dual - w.coef, np.empty(0))
        squared = float(apart.coef @ task.operator.vector(apart.coef).scores)
        lagrangian = task.loss.value(slack) - found.dual @ slack
        assert found.gap == pytest.approx(lagrangian + 0.5 * squared, abs=1e-8)
    # Steps on a hundred samples cost next to nothing.
    assert found.gap <= turns._GOAL_OF_SMALL_STEPS * 1e-6 * found.objective


def test_a_turn_is_resumed_where_it_was(monkeypatch):
    """To a smaller goal, after what Newton steps were given, and twice as much the next time."""
    problem = _problem(100)
    task = _task(problem)
    effort = Effort(task, 1e-9)
    turn = turns.SplittingTurn(task, effort, 1e-9)
    clock = Clock.start(Settings())
    assert not turn.may_resume
    first = list(turn.iterates(_start(task), clock))[-1]
    effort.mark(first)
    assert not turn.may_resume
    monkeypatch.setattr(turns, "_FIRST_SLICE", 0.0)
    turn = turns.SplittingTurn(task, effort, 1e-9)
    first = list(turn.iterates(_start(task), clock))[-1]
    assert turn.may_resume
    # Half of what it would take itself.
    assert not turn.is_to_resume(None)
    monkeypatch.setattr(turns, "_SLICE_OF_REST", 0.0)
    assert turn.is_to_resume(None)
    # Not where another method would be there before.
    assert not turn.is_to_resume(0.0)
    gaps = [found.gap for found in turn.resume(first, clock) if not found.is_final]
    assert gaps[0] <= first.gap
    assert gaps[-1] <= turns._NEXT_GOAL * turns._GOAL_OF_SMALL_STEPS * 1e-9 * first.objective
    # Until there is no smaller goal.
    for _ in range(5):
        last = list(turn.resume(first, clock))
    assert not last
    assert not turn.may_resume


def test_a_turn_changes_its_penalty_instead_of_being_given_up(monkeypatch):
    """Where it is far too small the bound is there long before the classifier is."""
    task = _task(_problem(100, C=100.0))
    changes = []
    invert = turns.SplittingTurn._invert
    monkeypatch.setattr(
        turns.SplittingTurn, "_invert", lambda self, rho: changes.append(rho) or invert(self, rho)
    )
    monkeypatch.setattr(turns, "gives_up", lambda gaps, *_: len(gaps) >= 45)
    monkeypatch.setattr(turns, "_INVERSES", 0.0)
    turn = turns.SplittingTurn(task, Effort(task, 1e-14), 1e-14)
    usual = turn._choose_penalty(_start(task))
    monkeypatch.setattr(turns, "choose_penalty", lambda *_, **__: 1e-3 * usual)
    for found in turn.iterates(_start(task), Clock.start(Settings())):
        assert np.isfinite(found.objective)
    assert changes == pytest.approx([1e-3 * usual, 8e-3 * usual])
    assert found.gap <= 1e-12 * found.objective


def test_interior_points_are_asked_for_where_newton_steps_would_take_longer(monkeypatch):
    task = _task(_problem(100))
    turn = turns.SplittingTurn(task, Effort(task, 1e-9), 1e-9)
    assert not turn.leaves_it_to(0.0)
    monkeypatch.setattr(turns, "gives_up", lambda *_: True)
    assert list(turn.iterates(_start(task), Clock.start(Settings())))
    assert not turn.leaves_it_to(None)
    assert turn.leaves_it_to(0.0)
    assert not turn.leaves_it_to(1e9)


def test_effort_counts_steps_and_foresees_what_is_left():
    task = _task(_problem(100))
    effort = Effort(task, 1e-6)
    assert effort.rest == np.inf
    for iterate in iterates(task, cold_start(task)):
        effort.note(iterate)
        spent = effort.spent
        effort.note(iterate)
        assert effort.spent == spent
        if iterate.n_iter >= 3:
            break
    assert effort.spent > 0.0
    assert np.isfinite(effort.best_gap)
    # From 1e-3 to 1e-4 in the last third of nine steps: twice as much is left.
    effort = Effort(task, 1e-6)
    iterate.objective = 1.0
    spent = []
    for n_iter in range(1, 10):
        iterate.gap, iterate.n_iter = 10.0 ** -(1.0 + n_iter / 3.0), n_iter
        effort.note(iterate)
        spent.append(effort.spent)
    assert effort.rest == pytest.approx(2.0 * (spent[8] - spent[5]))
    iterate.gap, iterate.n_iter = 1e-3, 30
    effort.note(iterate)
    assert effort.rest == np.inf
    iterate.gap, iterate.n_iter = 1e-7, 31
    effort.note(iterate)
    assert effort.rest == 0.0


def test_the_pace_is_counted_anew_behind_another_method():
    task = _task(_problem(100))
    effort = Effort(task, 1e-6)
    iterate = cold_start(task)
    iterate.objective = 1.0
    for n_iter in range(1, 10):
        iterate.gap, iterate.n_iter = 10.0**-n_iter, n_iter
        effort.note(iterate)
        if n_iter == 2:
            break
    assert not effort.is_marked
    # To 1e-3 by the other method, then nothing for three steps.
    effort.mark(replace(iterate, gap=1e-3))
    assert effort.is_marked
    assert effort.since_mark == 0.0
    before = effort.spent
    iterate.gap, iterate.n_iter = 2e-3, 5
    effort.note(iterate)
    assert effort.rest == np.inf
    assert effort.since_mark == pytest.approx(effort.spent - before)


@pytest.mark.parametrize(
    ("gaps", "n_left", "expected"),
    [
        ([1.0], 5, False),
        ([1.0], 0, True),
        # The first ones may rise.
        ([1.0] * 10, 100, False),
        ([1.0] * 11, 100, True),
        ([2.0**-k for k in range(11)], 20, False),
        ([2.0**-k for k in range(11)], 2, True),
    ],
)
def test_stalls(gaps, n_left, expected):
    assert turns._stalls(gaps, 1e-6, n_left, 5) is expected


_SLOW = [1e6 * 0.9**k for k in range(40)]


@pytest.mark.parametrize(
    ("gaps", "last_share", "worth", "expected"),
    [
        # Far from the goal, about 100 looks from it, and 250, and Newton steps behind it.
        (_SLOW, 0.3, None, False),
        ([1e6 * 0.95**k for k in range(40)], 0.3, None, True),
        # The same many looks of another method, some more, and many more.
        (_SLOW, 0.3, 100, True),
        (_SLOW, 0.3, 120, True),
        (_SLOW, 0.3, 200, False),
        # Its work was done.
        (_SLOW, 0.3, 39, True),
        # It got on, but does not any more.
        (_SLOW + [_SLOW[-1]] * 40, 0.3, 10_000, True),
        # Near the goal Newton steps are good at ending it.
        ([40.0 * 0.999**k for k in range(40)], 0.3, 10_000, True),
        # Behind it, where there is a second one, and where there is none.
        ([0.3 * 0.9**k for k in range(40)], 3e-4, 10_000, False),
        ([0.3 * 0.99**k for k in range(40)], 3e-4, 10_000, False),
        ([0.3 * 0.99**k for k in range(40)], 3e-4, None, True),
        # It is enough that the goal is in sight: 48 looks to a tenth, not 92 to a hundredth.
        ([0.3 * 0.95**k for k in range(40)], 3e-3, None, False),
    ],
)
def test_splitting_gives_up_by_what_else_would_take(gaps, last_share, worth, expected):
    """The rate is that of half of the looks where there is another method, else of five."""
    assert turns.gives_up(gaps, 1.0, last_share, worth) is expected


def test_gaps_of_steps_that_nobody_looked_at_lie_between():
    """Where ten steps seemed to end where the last one did, nothing seemed to get on."""
    task = _task(_problem(100))
    iterate = cold_start(task)
    iterate.objective = 1.0
    one_by_one, at_once = Effort(task, 1e-6), Effort(task, 1e-6)
    for n_iter in range(1, 13):
        iterate.gap, iterate.n_iter = 10.0 ** (-n_iter / 3.0), n_iter
        one_by_one.note(iterate)
        if n_iter in (1, 12):
            at_once.note(iterate)
    assert at_once.rest == pytest.approx(one_by_one.rest)
    assert at_once.spent == pytest.approx(one_by_one.spent)


@pytest.mark.parametrize("is_watched", [True, False])
def test_effort_counts_the_systems_that_were_solved(is_watched):
    """The first step has none, however many samples tie at w = 0, nor has one to come."""
    problem = _problem(400)
    task = _task(problem)
    effort, known = Effort(task, 1e-6), []
    start = cold_start(task)
    steps = Series.of(task).iterates(start, lambda: Look(-1.0), 100, is_watched=is_watched)
    for iterate in steps:
        effort.note(iterate)
        known.append((iterate.n_iter, iterate.n_solved, effort.spent))
        if iterate.n_iter >= 20:
            break
    first = next(spent for n_iter, _, spent in known if n_iter == 1)
    assert first < 0.1 * 400**3 / 3.0
    assert known[0][1] == 0 < max(size for _, size, _ in known)


def test_columns_are_preferred_unless_they_are_much_more_work():
    problem = _problem(300, alpha=0.12, width=0.01)
    task = _task(problem)
    rescue = Rescue(problem, task, Effort(task, 1e-6), 1e-6)
    start = cold_start(task)
    start.slack, start.objective, start.gap = np.ones(300), 300.0, 300.0
    work = rescue.expect_work(start)
    assert 0.0 < work < np.inf
    assert rescue.is_preferred(start, work)
    assert not rescue.is_preferred(start, 0.1 * work)
    easy = _problem(300, family="uniform", alpha=None)
    easy = OWAProblem(problem.y, easy.costs, loss="squared_hinge", gram=problem.samples.gram)
    task = _task(easy)
    rescue = Rescue(easy, task, Effort(task, 1e-6), 1e-6)
    assert rescue.expect_work(start) is None
    assert not rescue.is_preferred(start, np.inf)
