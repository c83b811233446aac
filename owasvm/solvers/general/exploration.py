r"""Many short descents: rank, train the classical SVM that those ranks give, rank again.

Charging every sample what its rank costs, and nothing else, makes a step a classical SVM with a
cost per sample. With weights that never rise, as trimmed ones, this is a step of descent:
concentration, as in least trimmed squares. With others it is a guess that often improves; what
counts is the objective, and the best classifiers are polished by
:mod:`~owasvm.solvers.general.descent`. All that is asked of the costs is
:meth:`~owasvm.costs.Costs.in_order`.

A *trail* starts on a few samples of each class, follows such steps, and goes on from the best
place by forgetting some of the samples that matter there (:meth:`Explorer.shake`). At a large C
valleys are narrow and many; so most trails begin at a share of all costs, where there are few, and
raise them in stages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from owasvm._jit import njit
from owasvm.problem import OWAProblem
from owasvm.solution import relative_gap
from owasvm.solvers.clock import Clock
from owasvm.solvers.general.candidates import Candidate, evaluate, improve_intercept
from owasvm.solvers.general.descent import descend_to_end
from owasvm.solvers.general.exchange import retrain
from owasvm.solvers.general.search import Search
from owasvm.solvers.general.tuning import ExplorationTuning

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def explore(search: Search, effort: int) -> Iterator[None]:
    """Follow trails, and polish where one of them leads lower than all before; a pause after each.

    A unit of effort is the work of one or two convex fits, counted, not timed: short trails are
    many, long ones few. A solution of a similar problem comes first. More effort begins
    with the same trails as less, so that it ends nowhere higher. Where a trail led nowhere and
    little can be gained, it is the last; where next to nothing can be gained there is none.
    """
    if effort < 1 or getattr(search.problem.samples, "is_partitioned", False):
        # Samples that are not in memory are not looked at one by one.
        return
    tuning, known = search.tuning.exploration, search.settings.warm_start
    if known is not None:
        start = evaluate(search.problem, known.dual, known.intercept)
        search.accept(descend_to_end(search, start))
    if relative_gap(search.incumbent.objective, search.bound) <= tuning.nothing_to_gain:
        return
    explorer = Explorer(search.problem, search.clock, tuning)
    lowest = np.inf
    for number in range(explorer.count_trails(effort)):
        if search.clock.expired or explorer.work > effort * explorer.allowance:
            break
        random = np.random.default_rng(search.random.integers(2**63))
        stages = tuning.stages[number % len(tuning.stages)]
        before = search.incumbent
        starts = [before] if number < len(tuning.stages) else []
        place = explorer.follow_trail(stages, random, starts)
        if place.promise < lowest:
            place = explorer.shake(place, tuning.n_more_shakes, random)
            lowest = place.promise
            classifier = explorer.classifier(place)
            search.accept(classifier)
            number_tried = search.tuning.descent.n_intercepts
            start = improve_intercept(search.problem, classifier, number_tried)
            search.accept(descend_to_end(search, start))
            explorer.work += tuning.work_of_polishing * explorer.allowance
        yield
        gained = relative_gap(before.objective, search.incumbent.objective)
        gap = relative_gap(before.objective, search.bound)
        if gained <= tuning.worth * gap and gap <= tuning.little_to_gain:
            break


class Place(NamedTuple):
    """A classifier made of the samples explored: coefficients with signs, residuals, intercept.

    ``own`` is what each of these samples pays by its rank among all, ``objective`` that of the
    problem at the costs of the stage, ``slack`` the slacks of the samples explored. ``promise`` is
    what the objective comes to when training is finished: violations that are left cost C times as
    much as they are worth.
    """

    coef: FloatArray
    residual: FloatArray
    intercept: float
    objective: float
    promise: float
    own: FloatArray
    slack: FloatArray


def _promise(place: Place) -> float:
    return place.promise


@njit(cache=True)
def _charge(
    y: FloatArray,
    coef: FloatArray,
    residual: FloatArray,
    slack: FloatArray,
    order: IntArray,
    costs: FloatArray,
    paid: FloatArray,
    own: FloatArray,
) -> tuple[float, float]:
    """Overwrites `own`: hands out costs in an order of the slacks; objective and promise.

    The promise is the dual value at the costs `paid` in training, and the difference that other
    costs make: the former is off by the square of a violation, where the objective is off by a
    multiple of it.
    """
    half_norm = 0.0
    total = 0.0
    for i in range(y.size):
        half_norm += 0.5 * coef[i] * (y[i] - residual[i])
        total += coef[i] * y[i]
    objective, promise = half_norm, total - half_norm
    for k in range(y.size):
        i = order[k]
        own[i] = costs[k]
        if slack[i] > 0.0:
            objective += costs[k] * slack[i]
            promise += (costs[k] - paid[i]) * slack[i]
    return objective, promise


class Explorer:
    """Short descents on all samples or, where they are many, on some of them.

    Samples are always ranked among all. Where only some are explored, each of them stands for
    several, at a multiple of its cost.

    Parameters
    ----------
    problem : OWAProblem
        The problem.
    clock : Clock
        When it expires, descents end where they are.
    tuning : ExplorationTuning
        The numbers that were chosen.

    Attributes
    ----------
    work : float
        What was done so far, in kernel values looked at.
    """

    def __init__(self, problem: OWAProblem, clock: Clock, tuning: ExplorationTuning) -> None:
        self._problem = problem
        self._clock = clock
        self._tuning = tuning
        n_samples = problem.n_samples
        self._index: IntArray = np.arange(n_samples)
        if n_samples > tuning.max_samples:
            drawn = np.random.default_rng(0).permutation(n_samples)[: tuning.max_samples]
            self._index = np.sort(drawn)
        self._y = problem.y[self._index]
        self._share = n_samples / self._index.size
        self._gram = np.ascontiguousarray(problem.samples.gram_among(self._index))
        self._squares = self._gram.diagonal().copy()
        self._room = np.empty_like(self._gram)
        self._is_complete = self._index.size == n_samples
        self._stage = 1.0
        self.work = 0.0

    @property
    def allowance(self) -> float:
        """Work that a unit of effort allows."""
        fixed, of_pairs = self._tuning.allowance
        return fixed + of_pairs * self._problem.n_samples**2

    def _count(self, work: tuple[int, int]) -> int:
        """Work that grows with the number of samples."""
        fixed, of_samples = work
        return fixed + of_samples * self._problem.n_samples

    def count_trails(self, effort: int) -> int:
        """Trails at most. Where some samples stand for all, more of them find little."""
        return effort * (self._tuning.max_trails if self._is_complete else 1)

    def follow_trail(
        self, stages: Sequence[float], random: np.random.Generator, starts: Sequence[Candidate]
    ) -> Place:
        """The best place of a trail whose costs are raised in stages, given as shares of them."""
        tuning = self._tuning
        self._stage = stages[0]
        places = [self._look_at(start) for start in starts]
        # The first trails of their kind know the classical SVM as well; others go their own ways.
        if starts:
            places.append(self._train_all())
        places += [self._train_few(random) for _ in range(tuning.n_few)]
        places = [self._descend(place, tuning.n_short, tuning.rough) for place in places]
        place = min(places, key=_promise)
        for stage in stages:
            self._stage = stage
            place = self._rank(place.coef, place.residual, place.intercept, None)
            place = self._descend(place, tuning.n_long, tuning.accuracy)
            place = self.shake(place, tuning.n_shakes // len(stages), random)
        return place

    def shake(self, place: Place, n_trials: int, random: np.random.Generator) -> Place:
        """Descend after some samples that matter were forgotten, again and again.

        A better place is taken at once. Samples matter by their coefficient and by what they pay.
        """
        tuning = self._tuning
        # The farther those explored are from all, the less there is to gain among them.
        for _ in range(int(n_trials / self._share)):
            if self._clock.expired:
                break
            own = self._forget(place, random)
            if own is None:
                break
            forgetful = self._train(place, own, tuning.rough)
            if np.array_equal(forgetful.own, place.own):
                # It remembers.
                continue
            found = self._train(forgetful, forgetful.own, tuning.accuracy)
            is_hopeful = found.promise < tuning.hopeless * place.promise
            if is_hopeful and not np.array_equal(forgetful.own, found.own):
                found = self._descend(found, tuning.n_long, tuning.accuracy)
            if found.promise < place.promise:
                place = found
        return place

    def _forget(self, place: Place, random: np.random.Generator) -> FloatArray | None:
        """What samples pay when some that matter pay nothing; None where none matters.

        By turns of chance: some here and there; neighbours of one class, on which a classifier
        changes its mind together; or one of them, while cheap samples near each other pay in full.
        """
        self.work += self._count(self._tuning.work_of_forgetting)
        matters = np.maximum(place.slack, 0.0) * place.own + np.abs(place.coef)
        sums = np.cumsum(matters)
        if not 0.0 < sums[-1] < np.inf:
            return None
        least, most = self._tuning.forgotten
        share = least * (most / least) ** random.random()
        number = max(int(share * np.count_nonzero(place.coef)), 1)
        drawn = np.searchsorted(sums, sums[-1] * random.random(number), side="right")
        drawn = np.minimum(drawn, sums.size - 1)
        own = place.own.copy()
        way = random.integers(3)
        if way == 0:
            own[drawn] = 0.0
        elif way == 1:
            own[self._find_neighbours(drawn[0], matters > 0.0, number)] = 0.0
        else:
            dearest = float(own.max())
            is_cheap = own < 0.5 * dearest
            own[drawn[0]] = 0.0
            cheap = np.flatnonzero(is_cheap)
            if cheap.size:
                one = cheap[random.integers(cheap.size)]
                own[self._find_neighbours(one, is_cheap, max(number // 2, 1))] = dearest
        return own

    def _find_neighbours(self, centre: int, among: BoolArray, number: int) -> IntArray:
        """The samples of the same class that are nearest to one, which is among them."""
        same = (among & (self._y == self._y[centre])).nonzero()[0]
        if same.size <= number:
            return same
        distances = (self._squares - 2.0 * self._gram[centre])[same]
        return same[np.argpartition(distances, number - 1)[:number]]

    def classifier(self, place: Place) -> Candidate:
        """The classifier at a place, for the problem itself."""
        coef = np.zeros(self._problem.n_samples)
        coef[self._index] = self._y * place.coef
        return evaluate(self._problem, coef, place.intercept)

    def _train_all(self) -> Place:
        """The classical SVM."""
        costs = self._problem.costs
        own = np.full(self._y.size, costs.total / costs.n_samples * self._share * self._stage)
        return self._train(self._nothing, own, self._tuning.rough)

    def _train_few(self, random: np.random.Generator) -> Place:
        """The classical SVM of a few samples of each class."""
        own = np.zeros(self._y.size)
        number = int(random.integers(*self._tuning.few))
        dearest = float(self._nothing.own.max())
        for label in (-1.0, 1.0):
            members = np.flatnonzero(self._y == label)
            own[random.permutation(members)[:number]] = dearest
        return self._train(self._nothing, own, self._tuning.rough)

    @property
    def _nothing(self) -> Place:
        """The classifier 0."""
        return self._rank(np.zeros(self._y.size), self._y.copy(), 0.0, None)

    def _look_at(self, start: Candidate) -> Place:
        """The place of a classifier of which only the samples explored are kept."""
        coef = self._y * start.coef[self._index]
        residual = self._y - self._gram @ coef
        return self._rank(coef, residual, start.intercept, None)

    def _descend(self, place: Place, n_steps: int, accuracy: float) -> Place:
        """Train by ranks until the objective no longer falls; the best place on the way."""
        best = place
        for step in range(n_steps):
            paid = place.own
            place = self._train(place, paid, accuracy)
            falls = place.promise < (1.0 - self._tuning.worth) * best.promise
            best = min(best, place, key=_promise)
            # The first step of a short descent answers to other costs than those of its start.
            has_ended = (step > 0 and not falls) or np.array_equal(paid, place.own)
            if has_ended or self._clock.expired:
                break
        return best

    def _train(self, place: Place, paid: FloatArray, accuracy: float) -> Place:
        coef, residual = place.coef.copy(), place.residual.copy()
        most = int(self._tuning.max_exchanges * self._y.size / self._share)
        intercept, is_accurate, n_values = retrain(
            self._gram, self._y, paid, coef, residual, accuracy, most, self._room
        )
        self.work += n_values
        is_finished = is_accurate and accuracy <= self._tuning.accuracy
        return self._rank(coef, residual, intercept, paid if is_finished else None)

    def _rank(
        self, coef: FloatArray, residual: FloatArray, intercept: float, paid: FloatArray | None
    ) -> Place:
        """A classifier with its objective, and with costs by its ranks.

        If it was trained to the end, `paid` is what the samples paid then.
        """
        problem, y = self._problem, self._y
        slack = y * (residual - intercept)
        own = np.empty(problem.n_samples)
        times = 1 if problem.costs.sample_weight is None else self._tuning.weighted_ranking
        self.work += times * self._count(self._tuning.work_of_ranking)
        if self._is_complete:
            # Beyond the margin the farther one ranks lower, though both deviate by nothing.
            order = np.argsort(slack, kind="stable")
            costs = self._stage * problem.costs.in_order(order)
            charged = (own if paid is None else paid, own)
            objective, promise = _charge(y, coef, residual, slack, order, costs, *charged)
            promise = objective if paid is None else promise
        else:
            every = np.zeros(problem.n_samples)
            every[self._index] = coef
            self.work += problem.n_samples * int(np.count_nonzero(coef))
            every = 1.0 - problem.y * (problem.samples.scores(every) + intercept)
            order = np.argsort(every, kind="stable")
            costs = self._stage * problem.costs.in_order(order)
            half_norm = 0.5 * float(coef @ (y - residual))
            objective = half_norm + float(costs @ np.maximum(every[order], 0.0))
            own[order] = costs
            own = self._share * own[self._index]
            promise = objective
        # Among numbers that overflow nothing is promised.
        objective = objective if math.isfinite(objective) else math.inf
        promise = promise if math.isfinite(promise) else math.inf
        return Place(coef, residual, intercept, objective, promise, own, slack)
