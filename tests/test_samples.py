"""Samples of every kind behind one protocol, and a third kind that goes through everything."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from owasvm import OWASVC, LinearOWASVC
from owasvm.certificate import certificate
from owasvm.kernels import Kernel
from owasvm.problem import OWAProblem, RankCosts
from owasvm.samples import (
    KINDS,
    ActiveSet,
    FeatureSamples,
    GramSamples,
    Memory,
    Samples,
    feature_operator,
    prepare,
    samples_of,
)
from owasvm.samples import kernel as kernel_module
from owasvm.solution import Status
from owasvm.solvers import solve
from tests.block_kernel import BlockKernel
from tests.extended import Wide, dot, inner, inner_products, squared_distances

FloatArray = NDArray[np.float64]

GAMMA = 0.4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(14, 3)) + np.array([2.0, -1.0, 30.0])
WIDE = RNG.normal(size=(14, 25)) + 5.0
SPARSE = np.where(RNG.random((14, 5)) < 0.4, RNG.normal(size=(14, 5)), 0.0)
LABELS = np.where(X[:, 0] + RNG.normal(size=14) > 2.0, 1.0, -1.0)


@dataclass
class Kind:
    """Samples, and their inner products with twice the digits, as moved and as given."""

    make: Callable[[], Samples]
    moved: Wide
    given: Wide


def products(rows: Wide) -> Wide:
    columns = rows.T
    return (columns.reshape(*columns.shape, 1) * columns.reshape(columns.shape[0], 1, -1)).sum(
        axis=0
    )


def moved_products(rows: FloatArray) -> Wide:
    return products(Wide(rows) - Wide(rows.mean(axis=0)))


def anchored_poly() -> Wide:
    """``(<x, z> + 1)^2`` of ``phi(x) - phi(m)``."""
    mean = X.mean(axis=0)
    values = (inner_products(np.vstack((X, mean))) + 1.0).power(2)
    at_mean = values[:-1, -1]
    n_samples = X.shape[0]
    return (
        values[:-1, :-1]
        - at_mean.reshape(n_samples, 1)
        - at_mean.reshape(1, n_samples)
        + values[-1, -1]
    )


GAUSSIAN = (squared_distances(X) * -GAMMA).exp()
EVERY = {
    "features": Kind(lambda: FeatureSamples(X), inner_products(X), inner_products(X)),
    "moved": Kind(lambda: prepare(X, Kernel("linear")), moved_products(X), inner_products(X)),
    "sparse": Kind(
        lambda: prepare(sp.csr_matrix(SPARSE), Kernel("linear")),
        inner_products(SPARSE),
        inner_products(SPARSE),
    ),
    "gram": Kind(lambda: prepare(X, Kernel("rbf", gamma=GAMMA)), GAUSSIAN, GAUSSIAN),
    "wide": Kind(
        lambda: prepare(WIDE, Kernel("linear")), moved_products(WIDE), inner_products(WIDE)
    ),
    "poly": Kind(
        lambda: prepare(X, Kernel("poly", degree=2, coef0=1.0)),
        anchored_poly(),
        (inner_products(X) + 1.0).power(2),
    ),
    "blocks": Kind(lambda: BlockKernel(X, GAMMA), GAUSSIAN, GAUSSIAN),
}
every = pytest.mark.parametrize("kind", EVERY.values(), ids=EVERY.keys())


def coefficients(seed: int = 1, *, balanced: bool = False) -> FloatArray:
    coef = np.random.default_rng(seed).normal(size=14) * 10.0 ** np.arange(-3.0, 4.0).repeat(2)
    return coef - coef.mean() if balanced else coef


def norms_of(gram: Wide) -> FloatArray:
    return np.sqrt(np.diag(gram.doubles()))


# What every kind answers


def test_kinds_are_what_they_should_be() -> None:
    made = {name: kind.make() for name, kind in EVERY.items()}
    assert {name: type(samples).__name__ for name, samples in made.items()} == {
        "features": "FeatureSamples",
        "moved": "FeatureSamples",
        "sparse": "FeatureSamples",
        "gram": "GramSamples",
        "wide": "GramSamples",
        "poly": "GramSamples",
        "blocks": "BlockKernel",
    }
    # One kernel, however its values come about.
    np.testing.assert_allclose(
        made["gram"].gram_matrix(), made["blocks"].gram_matrix(), rtol=1e-14
    )
    assert {name for name, samples in made.items() if samples.needs_balance} == {"wide", "poly"}


@every
def test_products(kind: Kind) -> None:
    samples, exact = kind.make(), kind.moved
    coef = coefficients()
    scale = norms_of(exact) * float(norms_of(exact) @ np.abs(coef))
    assert samples.n_samples == 14
    np.testing.assert_allclose(samples.norms, norms_of(exact), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        samples.gram_matrix(), exact.doubles(), rtol=0, atol=1e-13 * norms_of(exact).max() ** 2
    )
    expected = dot(exact, coef).doubles()
    assert np.all(np.abs(samples.scores(coef) - expected) <= 1e-13 * scale)
    weight = samples.weight(coef)
    if weight is not None:
        assert weight @ weight == pytest.approx(float(inner(coef, dot(exact, coef))), rel=1e-9)
    assert samples.is_definite
    assert samples.n_multiplications > 0


@every
@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_errors_of_an_evaluation_bound_the_errors(kind: Kind, careful: bool, seed: int) -> None:
    samples = kind.make()
    coef = coefficients(seed) * 10.0 ** (2 * seed)
    found = samples.evaluate(coef, careful=careful)
    assert (found.weight is not None) == samples.keeps_weight
    if found.weight is None:
        exact_scores = dot(kind.moved, coef)
        squared = inner(coef, exact_scores)
    else:
        # The classifier that is stored is w; what its coefficients lose is charged to the bound.
        dense = SPARSE if kind is EVERY["sparse"] else X
        rows = Wide(dense) - Wide(dense.mean(axis=0)) if kind is EVERY["moved"] else Wide(dense)
        exact_scores = dot(rows, found.weight)
        squared = inner(found.weight, found.weight)
    off = (Wide(found.scores) - exact_scores).absolute().doubles()
    assert np.all(off <= found.score_error)
    assert abs(float(Wide(found.squared_norm) - squared)) <= found.norm_error
    # A bound that is worth something: rounding, not more.
    reach = float(norms_of(kind.moved) @ np.abs(coef))
    assert np.all(found.score_error <= 1e-12 * reach * norms_of(kind.moved).max())
    value, error = samples.dual_norm(coef, found)
    exact_norm = inner(coef, dot(kind.moved, coef))
    assert abs(float(Wide(value) - exact_norm)) <= error


@pytest.mark.parametrize("careful", [False, True])
def test_errors_of_exact_kernel_values(careful: bool) -> None:
    # Whole numbers, so that nothing but the products themselves is off.
    rows = np.random.default_rng(12).integers(-9, 10, size=(14, 4)).astype(float)
    samples = GramSamples(rows @ rows.T, rounding=np.zeros(14), definite=True)
    for seed in range(20):
        coef = coefficients(seed)
        found = samples.evaluate(coef, careful=careful)
        exact = dot(inner_products(rows), coef)
        off = (Wide(found.scores) - exact).absolute().doubles()
        assert np.all(off <= found.score_error)
        assert abs(float(Wide(found.squared_norm) - inner(coef, exact))) <= found.norm_error
        if careful:
            assert np.all(found.score_error <= 3e-16 * (np.abs(found.scores) + 1.0))


@every
def test_careful_products_lose_less(kind: Kind) -> None:
    samples = kind.make()
    coef = coefficients()
    plain, careful = (samples.evaluate(coef, careful=flag) for flag in (False, True))
    assert careful.score_error.max() <= plain.score_error.max()
    np.testing.assert_allclose(careful.scores, plain.scores, atol=2 * plain.score_error.max())


@every
def test_intercepts_as_given_and_as_moved(kind: Kind) -> None:
    samples = kind.make()
    coef = coefficients(balanced=True)
    weight = samples.weight(coef) if samples.keeps_weight else None
    for b in (0.0, 1.25, -300.0):
        given = samples.intercept_as_given(coef, weight, b)
        size = 1.0 + abs(given) + float(norms_of(kind.given) @ np.abs(coef)) ** 2
        back = samples.intercept_as_moved(coef, weight, given)
        assert back == pytest.approx(b, abs=1e-12 * size)
        # The same decision values on the data as given.
        ours = samples.scores(coef) + b
        theirs = (dot(kind.given, coef) + given).doubles()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * size)
        assert samples.intercept_error(coef, b) >= 0.0
        stored = samples.store_intercept(weight, b)
        assert stored == pytest.approx(b, abs=1e-12 * size)


@every
def test_weight_as_given(kind: Kind) -> None:
    samples = kind.make()
    coef = coefficients()
    weight = samples.weight_as_given(coef)
    if not samples.keeps_weight:
        assert weight is None
        with pytest.raises(TypeError, match="keeps no w"):
            samples.evaluate_weight(np.ones(3))
        return
    rows = SPARSE if kind is EVERY["sparse"] else X
    np.testing.assert_allclose(weight, rows.T @ coef, rtol=1e-9)


@every
def test_some_of_the_samples_and_copies(kind: Kind) -> None:
    samples = kind.make()
    index = np.array([3, 0, 3, 7])
    taken = samples.take(index)
    assert taken.n_samples == 4
    expected = samples.gram_matrix()[np.ix_(index, index)]
    np.testing.assert_allclose(taken.gram_matrix(), expected, rtol=1e-12, atol=1e-12)
    assert taken.is_definite
    coef = np.array([1.0, -2.0, 0.5, 0.5])
    wide = np.zeros(14)
    np.add.at(wide, index, coef)
    np.testing.assert_allclose(taken.scores(coef), samples.scores(wide)[index], atol=1e-9)
    assert taken.intercept_as_given(coef, taken.weight(coef), 0.3) == pytest.approx(
        samples.intercept_as_given(wide, samples.weight(wide), 0.3), rel=1e-9
    )


@every
def test_coordinates_have_the_same_products(kind: Kind) -> None:
    rows = kind.make().coordinates()
    assert rows.shape[0] == 14 and rows.shape[1] <= 14
    exact = kind.moved.doubles()
    np.testing.assert_allclose(rows @ rows.T, exact, rtol=0, atol=1e-12 * np.abs(exact).max())


@every
def test_definite_neighbours(kind: Kind) -> None:
    samples = kind.make()
    neighbour = samples.nearest_definite()
    np.testing.assert_allclose(
        neighbour.gram_matrix(), samples.gram_matrix(), atol=1e-12 * np.abs(X).max() ** 4
    )


def test_indefinite_kernels() -> None:
    gram = np.array([[1.0, 2.0], [2.0, 1.0]])
    samples = samples_of(gram=gram)
    assert not samples.is_definite
    nearest = samples.nearest_definite()
    assert nearest.is_definite
    np.testing.assert_allclose(nearest.gram_matrix(), np.full((2, 2), 1.5))
    np.testing.assert_array_equal(gram, [[1.0, 2.0], [2.0, 1.0]])


def test_either_features_or_gram() -> None:
    for arguments in ({}, {"features": X, "gram": X @ X.T}):
        with pytest.raises(ValueError, match="either features or gram"):
            samples_of(**arguments)
    with pytest.raises(ValueError, match=r"square matrix, got shape \(14, 3\)"):
        GramSamples(X)


# The data as the Newton solver sees them


def centred_gram(kind: Kind, centred: bool) -> FloatArray:
    gram = kind.moved.doubles()
    # Sparse features would not stay sparse; moved ones are centred already.
    if not centred or kind is EVERY["sparse"]:
        return gram
    flat = np.eye(14) - 1.0 / 14
    return flat @ gram @ flat


@every
@pytest.mark.parametrize("centred", [False, True])
def test_residuals_one_after_the_other(
    kind: Kind, centred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a few changed coefficients tell is what all of them do."""
    monkeypatch.setattr(feature_operator, "_MANY_ENTRIES", 0)
    operator = kind.make().operator(centred=centred)
    gram = centred_gram(kind, centred)
    size = np.abs(kind.moved.doubles()).max()
    find, rng = operator.residuals(), np.random.default_rng(4)
    target, at = rng.normal(size=(2, 14))
    # All of them, some, most, none; to a point that is all but there, and on.
    for n_changed, near in ((14, 1.0), (3, 1.0), (9, 1.0), (0, 1.0), (2, 1e-7), (4, 1.0)):
        changed = rng.permutation(14)[:n_changed]
        target[changed] += rng.normal(size=n_changed)
        current = operator.vector(target + near * (at - target))
        residual, squared = find(target.copy(), current)
        operator.complete(residual)
        change = target - current.coef
        np.testing.assert_allclose(residual.coef, change, rtol=1e-7, atol=1e-10 * near)
        np.testing.assert_allclose(residual.scores, gram @ change, atol=1e-9 * near * size)
        expected = pytest.approx(change @ gram @ change, rel=1e-6, abs=1e-12 * near * size)
        assert squared == expected


@every
@pytest.mark.parametrize("centred", [False, True])
def test_vectors(kind: Kind, centred: bool) -> None:
    samples = kind.make()
    operator = samples.operator(centred=centred)
    gram = centred_gram(kind, centred)
    size = np.abs(kind.moved.doubles()).max()
    assert operator.n_samples == 14
    assert operator.mean_diagonal() == pytest.approx(np.trace(gram) / 14, rel=1e-9)
    one, other = np.random.default_rng(2).normal(size=(2, 14))
    first, second = operator.vector(one.copy()), operator.vector(other.copy())
    np.testing.assert_allclose(first.scores, gram @ one, atol=1e-11 * size)
    assert operator.inner(first, second) == pytest.approx(one @ gram @ other, abs=1e-10 * size)
    residual, squared = operator.residual(other.copy(), first)
    change = other - one
    np.testing.assert_allclose(residual.coef, change)
    assert squared == pytest.approx(change @ gram @ change, rel=1e-9)
    operator.complete(residual)
    np.testing.assert_allclose(residual.scores, gram @ change, atol=1e-11 * size)
    balanced = one - one.mean()
    shifted = operator.vector(balanced.copy()).scores + operator.intercept_shift(balanced)
    np.testing.assert_allclose(shifted, samples.scores(balanced), atol=1e-10 * size)
    # Vectors move in place, copies share nothing with them.
    copy = first.copy()
    first.move(0.5, second)
    np.testing.assert_allclose(first.scores, gram @ (one + 0.5 * other), atol=1e-11 * size)
    np.testing.assert_array_equal(copy.coef, one)


def active_set(rng: np.random.Generator, size: int, *, weighted: bool, free: bool) -> ActiveSet:
    """Some samples on their own, and two blocks."""
    samples = rng.permutation(size)[: max(6, (2 * size) // 3)]
    root = np.sqrt(rng.uniform(0.5, 3.0, samples.size)) if weighted else np.ones(samples.size)
    return ActiveSet(
        samples=samples,
        offsets=np.array([0, samples.size - 5, samples.size - 3, samples.size]),
        shrink=np.array([1.0, 1.0, rng.uniform(0.1, 0.9), 1.0]),
        root=root,
        tie=root * rng.choice([-1.0, 1.0], samples.size),
        ridge=0.3,
        imbalance=0.01,
        free=free,
        accuracy=1e-9,
        memory=Memory(),
    )


def solve_stated_system(
    rows: FloatArray, active: ActiveSet, residual: FloatArray
) -> tuple[FloatArray, float]:
    """h and db of the module's equations, in the coordinates of some rows."""
    size = active.samples.size
    root_of_jacobian = np.eye(size)
    for k in range(1, active.offsets.size - 1):
        inside = slice(active.offsets[k], active.offsets[k + 1])
        q = active.tie[inside]
        root_of_jacobian[inside, inside] -= active.shrink[k] * np.outer(q, q) / (q @ q)
    B = root_of_jacobian @ (active.root[:, None] * rows[active.samples])
    e = root_of_jacobian @ active.root
    np.testing.assert_allclose(active.ones, e, atol=1e-15)
    n_rows = rows.shape[1]
    system = np.zeros((n_rows + 1, n_rows + 1))
    system[:-1, :-1] = np.eye(n_rows) + B.T @ B / active.ridge
    system[:-1, -1] = B.T @ e / active.ridge
    system[-1, :-1] = e @ B / active.ridge
    system[-1, -1] = e @ e / active.ridge
    if not active.free:
        return np.linalg.solve(system[:-1, :-1], residual), 0.0
    solution = np.linalg.solve(system, np.append(residual, active.imbalance))
    return solution[:-1], float(solution[-1])


def check_newton_step(
    operator: Any, gram: FloatArray, active: ActiveSet, tolerance: float
) -> None:
    values, vectors = np.linalg.eigh(gram)
    rows = vectors * np.sqrt(np.maximum(values, 0.0))
    coef = 0.1 * np.random.default_rng(3).normal(size=gram.shape[0]) / np.abs(gram).max()
    residual = operator.vector(coef.copy())
    step, intercept = operator.newton_step(residual, active)
    h, db = solve_stated_system(rows, active, rows.T @ coef)
    assert abs(db) < 2.0
    assert intercept == pytest.approx(db, abs=tolerance)
    np.testing.assert_allclose(
        step.scores, rows @ h, atol=tolerance * max(1.0, abs(rows @ h).max())
    )
    # The coefficients belong to the same vector.
    again = operator.vector(step.coef.copy())
    np.testing.assert_allclose(again.scores, step.scores, atol=tolerance * 10.0)


@every
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", [False, True])
def test_newton_steps(kind: Kind, centred: bool, weighted: bool, free: bool) -> None:
    rng = np.random.default_rng(4)
    active = active_set(rng, 14, weighted=weighted, free=free)
    operator = kind.make().operator(centred=centred)
    check_newton_step(operator, centred_gram(kind, centred), active, 1e-7)


@pytest.mark.parametrize("make", [lambda Z: prepare(Z, Kernel("rbf", gamma=0.3)), None])
def test_newton_steps_of_many_samples(make: Callable[[FloatArray], Samples] | None) -> None:
    # From 100 active samples on a Gram matrix is worth conjugate gradients.
    Z = np.random.default_rng(5).normal(size=(200, 3))
    samples = BlockKernel(Z, 0.3) if make is None else make(Z)
    flat = np.eye(200) - 1.0 / 200
    gram = flat @ samples.gram_matrix() @ flat
    active = active_set(np.random.default_rng(6), 200, weighted=True, free=True)
    check_newton_step(samples.operator(), gram, active, 1e-5)


@pytest.mark.parametrize("free", [False, True])
def test_newton_steps_of_many_features(free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    active = active_set(np.random.default_rng(4), 14, weighted=True, free=free)
    flat = np.eye(14) - 1.0 / 14
    gram = flat @ WIDE @ WIDE.T @ flat
    check_newton_step(FeatureSamples(WIDE).operator(), gram, active, 1e-7)
    # Sparse ones beyond a size are never made dense; their systems are solved loosely.
    monkeypatch.setattr(feature_operator, "_MAX_DENSE_ENTRIES", 0)
    active.accuracy = 1e-15
    operator = FeatureSamples(sp.csr_matrix(flat @ WIDE)).operator()
    check_newton_step(operator, gram, active, 1e-6)


# Principal axes


@every
@pytest.mark.parametrize("even", [True, False])
def test_principal_axes_against_numpy(kind: Kind, even: bool) -> None:
    samples = kind.make()
    emphases = np.ones(14) if even else np.random.default_rng(7).uniform(0.5, 2.0, 14)
    axes = samples.principal_axes(emphases)
    shares = emphases / emphases.sum()
    flat = np.eye(14) - np.outer(np.ones(14), shares)
    centred = flat @ kind.moved.doubles() @ flat.T
    values, _ = np.linalg.eigh(np.sqrt(np.outer(emphases, emphases)) * centred)
    values = values[::-1]
    np.testing.assert_allclose(axes.norms, np.sqrt(np.diag(centred)), rtol=1e-7, atol=1e-7)
    number = min(axes.n_directions, 3)
    assert number >= 1
    scores = axes.direction_scores(number)
    gained = scores.T @ (emphases[:, None] * scores)
    np.testing.assert_allclose(gained, np.diag(values[:number]), atol=1e-8 * values[0])
    np.testing.assert_allclose(emphases @ scores, 0.0, atol=1e-8 * np.sqrt(values[0]))
    for taken in range(number):
        rest = axes.largest_remaining(taken)
        assert values[taken] <= rest <= values[taken] + 1e-9 * values[0]
        assert axes.leverages(taken).mean() == pytest.approx(1.0)
    # What is left has no scores along the directions that were taken out.
    coef = np.random.default_rng(8).normal(size=14)
    left = axes.without_directions(number).vector(coef.copy()).scores
    expected = (centred - scores @ scores.T) @ coef
    np.testing.assert_allclose(left, expected, atol=1e-8 * np.abs(centred).max())


@every
def test_coordinates_of_a_classifier(kind: Kind) -> None:
    samples = kind.make()
    axes = samples.principal_axes(np.ones(14))
    coef = coefficients(balanced=True) / 100.0
    number = min(axes.n_directions, 2)
    coordinates = axes.coordinates(coef, 0.7, number)
    values = samples.scores(coef) + 0.7
    # The same decision values: intercept, directions, and the rest.
    rest = axes.without_directions(number).vector(coef.copy()).scores
    along = axes.direction_scores(number) @ coordinates[1:]
    size = max(1.0, np.abs(values).max())
    np.testing.assert_allclose(coordinates[0] + along + rest, values, atol=1e-7 * size)
    back, intercept = axes.classifier(coef, coordinates)
    np.testing.assert_allclose(samples.scores(back) + intercept, values, atol=1e-7 * size)


# Nothing changes on the way


def arrays_of(thing: Any, seen: tuple[Any, ...] = ()) -> list[FloatArray]:
    """All numbers that an object holds."""
    found: list[FloatArray] = []
    for value in vars(thing).values():
        if any(value is known for known in seen):
            continue
        if sp.issparse(value):
            found += [value.data, value.indices, value.indptr]
        elif isinstance(value, np.ndarray):
            found.append(value)
        elif hasattr(value, "__dict__") and not callable(value):
            found += arrays_of(value, (*seen, thing))
    return found


@every
@pytest.mark.parametrize("family", ["basic", "quadratic"])
def test_solving_changes_no_samples(kind: Kind, family: str) -> None:
    samples = kind.make()
    costs = RankCosts(14, family, 0.5, 2.0)
    problem = OWAProblem(LABELS, costs, samples=samples)
    assert costs.convex == (family == "basic")
    # What is prepared of the data is kept with them: nothing of it may change, either.
    first = solve(problem)
    held = arrays_of(samples)
    before = [array.copy() for array in held]
    second = solve(OWAProblem(LABELS, costs, samples=samples))
    fresh = solve(OWAProblem(LABELS, costs, samples=kind.make()))
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    for other in (second, fresh):
        np.testing.assert_array_equal(other.dual, first.dual)
        assert other.intercept == first.intercept
        assert other.objective == first.objective
        assert other.lower_bound == first.lower_bound
        assert other.n_iter == first.n_iter
    assert first.status is Status.OPTIMAL


# The third kind

N_MOONS = 90
MOONS = np.random.default_rng(9).normal(size=(N_MOONS, 2))
COLOURS = np.where(
    MOONS[:, 0] * MOONS[:, 1] + 0.5 * np.random.default_rng(10).normal(size=N_MOONS) > 0,
    "red",
    "blue",
)


@pytest.fixture
def block_kernel() -> Iterator[list[BlockKernel]]:
    """The toy kind, made known by one line; the samples that were made."""
    made: list[BlockKernel] = []

    def make(Z: Any, kernel: Kernel) -> BlockKernel | None:
        samples = BlockKernel.make(Z, kernel)
        made.extend([] if samples is None else [samples])
        return samples

    KINDS.insert(0, make)
    yield made
    KINDS.remove(make)


def fit_both(clf: OWASVC, rows: FloatArray, labels: Any, mass: Any = None) -> tuple[Any, Any]:
    """The classifier with the toy kind, and the ordinary one."""
    toy = clone(clf).fit(rows, labels, sample_weight=mass)
    known = list(KINDS)
    KINDS[:] = known[1:]
    try:
        return toy, clone(clf).fit(rows, labels, sample_weight=mass)
    finally:
        KINDS[:] = known


def recompute(clf: OWASVC, rows: FloatArray, labels: Any, mass: Any = None) -> Any:
    """The certificate from the data alone."""
    dual = np.zeros(len(labels))
    dual[clf.support_] = clf.dual_coef_[0]
    return certificate(
        y=labels,
        weights=clf.weights,
        alpha=clf.alpha,
        C=clf.C,
        dual=dual,
        intercept=clf.intercept_[0],
        gram=Kernel("rbf", gamma=clf.gamma_).gram(rows),
        sample_weight=mass,
        loss=clf.loss,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "parameters",
    [
        {"C": 0.1},
        {"C": 30.0, "gamma": 0.5},
        # w is small: decisions hang on more digits than the objective.
        {"weights": "superquantile", "alpha": 0.2, "tol": 1e-9},
        {"loss": "squared_hinge"},
        {"loss": "squared_hinge", "C": 20.0, "weights": "exponential"},
        {"time_limit": 1000.0, "C": 3.0},
        {"class_weight": "balanced", "tol": 1e-9},
    ],
)
def test_convex_weights_of_the_third_kind(
    block_kernel: list[BlockKernel], parameters: dict[str, Any], weighted: bool
) -> None:
    mass = np.random.default_rng(11).uniform(0.2, 2.0, N_MOONS) if weighted else None
    toy, ordinary = fit_both(OWASVC(**parameters), MOONS, COLOURS, mass)
    assert len(block_kernel) == 1
    assert block_kernel[0].requests
    assert toy.status_ == "optimal"
    assert toy.objective_ == pytest.approx(ordinary.objective_, rel=1e-6)
    assert toy.lower_bound_ <= ordinary.objective_ * (1 + 1e-12)
    np.testing.assert_allclose(
        toy.decision_function(MOONS), ordinary.decision_function(MOONS), atol=1e-5
    )
    np.testing.assert_array_equal(toy.predict(MOONS), ordinary.predict(MOONS))
    if toy.class_weight is None:
        proof = recompute(toy, MOONS, COLOURS, mass)
        assert proof.gap <= 1e-6
        assert proof.objective == pytest.approx(toy.objective_, rel=1e-9)


def test_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Products ask for six rows at a time, Newton steps for those of the active samples: the whole
    # matrix is never formed.
    monkeypatch.setattr(kernel_module, "_BLOCK_ENTRIES", 6 * N_MOONS)
    signs = np.where(COLOURS == "red", 1.0, -1.0)
    for C in (0.05, 1.0, 20.0):
        costs = RankCosts(N_MOONS, "basic", 0.6, C)
        samples = BlockKernel(MOONS, 0.5, most=N_MOONS - 1)
        solution = solve(OWAProblem(signs, costs, samples=samples))
        assert solution.status is Status.OPTIMAL
        assert samples.requests.count(6) > N_MOONS // 6
        with pytest.raises(MemoryError, match="90 rows at a time are more than 89"):
            samples.gram_matrix()
        ordinary = solve(
            OWAProblem(signs, costs, samples=prepare(MOONS, Kernel("rbf", gamma=0.5)))
        )
        assert solution.objective == pytest.approx(ordinary.objective, rel=1e-6)


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
@pytest.mark.parametrize("solver", ["auto", "dca"])
@pytest.mark.parametrize("mass", [None, [1, 2, 1, 1] * 4])
@pytest.mark.parametrize(("family", "alpha"), [("trimmed", 0.2), ("quadratic", 0.8)])
def test_general_weights_of_the_third_kind(
    block_kernel: list[BlockKernel], solver: str, mass: Any, family: str, alpha: float
) -> None:
    clf = OWASVC(weights=family, alpha=alpha, gamma=0.5, solver=solver, time_limit=1000.0)
    toy, ordinary = fit_both(clf, MOONS[:16], COLOURS[:16], mass)
    assert len(block_kernel) == 1 and block_kernel[0].requests
    assert not toy.convex_
    assert toy.status_ == ordinary.status_
    # Both are optimal to mip_gap, and the bounds hold for either.
    size = max(1.0, ordinary.objective_)
    assert toy.lower_bound_ <= ordinary.objective_ + 1e-9 * size
    assert ordinary.lower_bound_ <= toy.objective_ + 1e-9 * size
    assert toy.objective_ == pytest.approx(ordinary.objective_, rel=1e-6)
    if solver == "auto":
        assert toy.gap_ <= 1e-4
    proof = recompute(toy, MOONS[:16], COLOURS[:16], mass)
    assert proof.objective == pytest.approx(toy.objective_, rel=1e-9)
    assert proof.lower_bound <= toy.objective_


def test_limits_of_the_third_kind(block_kernel: list[BlockKernel]) -> None:
    for parameters in ({}, {"weights": "trimmed", "alpha": 0.2}):
        clf = OWASVC(time_limit=1e-9, gamma=0.5, **parameters)
        with pytest.warns(ConvergenceWarning, match="time_limit"):
            clf.fit(MOONS[:16], COLOURS[:16])
        full = OWASVC(gamma=0.5, **parameters).fit(MOONS[:16], COLOURS[:16])
        assert clf.lower_bound_ <= full.objective_ * (1 + 1e-9)
        assert clf.objective_ >= full.lower_bound_ - 1e-9
    assert len(block_kernel) == 4


def test_several_classes_share_the_samples(block_kernel: list[BlockKernel]) -> None:
    labels = np.array(["a", "b", "c"])[np.arange(N_MOONS) % 3]
    toy, ordinary = fit_both(OWASVC(gamma=0.5), MOONS, labels)
    assert len(block_kernel) == 1
    np.testing.assert_allclose(toy.objective_, ordinary.objective_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::owasvm.ConstantClassifierWarning")
def test_others_are_not_its_business(block_kernel: list[BlockKernel]) -> None:
    for clf, rows in (
        (OWASVC(kernel="linear"), MOONS),
        (OWASVC(kernel="poly", coef0=1.0), MOONS),
        (LinearOWASVC(), MOONS),
        (OWASVC(), sp.csr_matrix(MOONS)),
    ):
        assert clf.fit(rows, COLOURS).status_ == "optimal"
    assert not block_kernel
