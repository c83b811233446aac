"""Train a model as the options say: choose, cross-validate, calibrate, fit."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from owasvm.cli._errors import counted, warn
from owasvm.cli._options import chooses, estimator, searches
from owasvm.cli._pipeline import calibrate, fit_model, make_model, transform
from owasvm.cli._progress import speak_seldom
from owasvm.cli._training import Training, explain_refusals, keep_early_stops


@dataclass(frozen=True)
class Choice:
    """What cross-validation chose.

    Parameters
    ----------
    parameters : dict
        The chosen ones, by name.
    n_candidates : int
        How many there were.
    """

    parameters: dict[str, Any]
    n_candidates: int


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Parameters
    ----------
    model : estimator
        Fitted on all rows.
    scores : dict
        By name of a score one number per fold, and the ``"seconds"`` of the folds; empty without
        cross-validation.
    choice : Choice or None
        None where there was nothing to choose.
    """

    model: Any
    scores: dict[str, list[float]]
    choice: Choice | None

    @property
    def classifier(self) -> Any:
        """The classifier inside, as it was fitted on all rows."""
        last = self.model[-1] if hasattr(self.model, "steps") else self.model
        calibrated = getattr(last, "calibrated_classifiers_", None)
        return last if calibrated is None else calibrated[0].estimator


def train(
    training: Training,
    arguments: argparse.Namespace,
    *,
    verbose: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Train a model.

    Parameters
    ----------
    training : Training
        The data.
    arguments : argparse.Namespace
        Options of ``owasvm fit``.
    verbose : int, default=0
        For the estimators.
    report : callable
        Gets a line whenever a step is done.

    Returns
    -------
    trained : Trained
    """
    choice = None
    scores: dict[str, list[float]] = {}
    if chooses(arguments):
        classifier, choice, scores = _choose(training, arguments, verbose, report)
        report(f"chosen out of {choice.n_candidates} candidates")
    else:
        classifier = estimator(arguments, training.labels)
        _set_verbose(classifier, verbose)
    last = calibrate(classifier, training.labels) if arguments.proba else classifier
    model = make_model(training.features, last)
    if choice is None and arguments.cv:
        scores = _cross_validate(model, training, arguments, report)
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        fit_model(model, training.samples, training.labels, training.groups)
    for message in dict.fromkeys(str(one.message) for one in caught):
        warn(message)
    trained = Trained(model, scores, choice)
    _set_verbose(trained.classifier, 0)
    return trained


def _set_verbose(classifier: Any, verbose: int) -> None:
    """Let a classifier speak, if it can."""
    if "verbose" in classifier.get_params():
        classifier.set_params(verbose=verbose)


def _folds(arguments: argparse.Namespace) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(arguments.cv, shuffle=True, random_state=arguments.seed)


def _cross_validate(
    model: Any, training: Training, arguments: argparse.Namespace, report: Callable[[str], None]
) -> dict[str, list[float]]:
    """Scores of the folds."""
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score, balanced_accuracy_score

    scores: dict[str, list[float]] = {"accuracy": [], "balanced_accuracy": [], "seconds": []}
    splits = _folds(arguments).split(training.samples, training.labels)
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        for number, (rows, others) in enumerate(splits, start=1):
            started = perf_counter()
            part, rest = training.take(rows), training.take(others)
            fitted = fit_model(clone(model), part.samples, part.labels, part.groups)
            predictions = fitted.predict(rest.samples)
            scores["accuracy"].append(float(accuracy_score(rest.labels, predictions)))
            scores["balanced_accuracy"].append(
                float(balanced_accuracy_score(rest.labels, predictions))
            )
            scores["seconds"].append(perf_counter() - started)
            report(
                f"fold {number} of {arguments.cv}: accuracy "
                f"{100.0 * scores['accuracy'][-1]:.2f} %, {scores['seconds'][-1]:.3g} s"
            )
    _tell_of(caught)
    return scores


def _tell_of(caught: list[warnings.WarningMessage]) -> None:
    """Say how often a cross-validation was warned, and of what."""
    if caught:
        how_many = counted(len(caught), "warning")
        warn(f"{how_many} in the cross-validation; the first: {caught[0].message}")


def _choose(
    training: Training,
    arguments: argparse.Namespace,
    verbose: int,
    report: Callable[[str], None],
) -> tuple[Any, Choice, dict[str, list[float]]]:
    """The classifier with the parameters of the best score, and its scores."""
    import numpy as np

    fitted = []
    with explain_refusals(), warnings.catch_warnings(record=True) as caught:
        keep_early_stops()
        samples = transform(training.features, training.samples)
        for search in searches(arguments, training.labels, _folds(arguments)):
            # Those that speak for themselves need nobody to tell where they are.
            callback = None if verbose else speak_seldom(report)
            search.set_params(refit=False, verbose=verbose, callback=callback)
            fitted.append(search.fit(samples, training.labels, rank_groups=training.groups))
    _tell_of(caught)
    best = fitted[int(np.argmax([search.best_score_ for search in fitted]))]
    results = best.cv_results_
    n_folds = best.n_splits_
    scores = {
        "accuracy": [
            float(results[f"split{k}_test_score"][best.best_index_]) for k in range(n_folds)
        ],
        "seconds": [sum(search.fit_time_ for search in fitted)],
    }
    classifier = estimator(arguments, training.labels)
    classifier.set_params(**best.best_params_)
    _set_verbose(classifier, verbose)
    n_candidates = sum(len(search.cv_results_["params"]) for search in fitted)
    return classifier, Choice(dict(best.best_params_), n_candidates), scores
