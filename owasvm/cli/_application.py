"""A saved model applied to a data file: what ``predict`` and ``evaluate`` share."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owasvm.cli._data import ReadingOptions, read_data
from owasvm.cli._errors import UsageError, counted, listing, note
from owasvm.cli._matching import Matched, match
from owasvm.cli._notes import Notes
from owasvm.cli._sources import data_path, in_words, name_of, size
from owasvm.cli._svmlight import is_sparse
from owasvm.persistence import MAX_BYTES as MAX_MODEL_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK_ENTRIES = 2**22


@dataclass(frozen=True)
class Application:
    """What a model says about the rows of a file.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Labels that the model knows.
    matched : Matched
        The rows, with true labels and ids as far as the file has them.
    values : ndarray of shape (n_samples,) or (n_samples, n_classes)
        Decision values.
    probabilities : ndarray of shape (n_samples, n_classes) or None
        None where the model has none.
    predictions : ndarray of shape (n_samples,)
        The most probable classes, or those that the decision values speak for.
    """

    classes: NDArray[Any]
    matched: Matched
    values: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None
    predictions: NDArray[Any]

    @property
    def knows_a_label(self) -> bool:
        """Whether any row has a label that the model knows."""
        truth = self.matched.truth
        return truth is not None and not _is_unseen(truth, self.classes).all()


def add_application_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model, the data, and how large the model may be."""
    add_model_argument(parser)
    parser.add_argument(
        "data",
        metavar="DATA",
        type=data_path,
        help="CSV, Parquet or svmlight file, '-' for standard input",
    )


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Add the model, and how large it may be."""
    parser.add_argument("model", metavar="MODEL", type=Path, help="model file of 'owasvm fit'")
    parser.add_argument(
        "--max-model-size",
        type=size,
        metavar="SIZE",
        default=MAX_MODEL_BYTES,
        help="most bytes that the model file may unpack to, such as 500M or 20G "
        f"(default: {in_words(MAX_MODEL_BYTES)})",
    )


def load_model(path: Path, max_bytes: int, *, with_data: bool = True) -> tuple[Any, Notes]:
    """The model, and what ``owasvm fit`` noted about its data.

    Parameters
    ----------
    path : Path
        The model file.
    max_bytes : int
        Most bytes that it may unpack to.
    with_data : bool, default=True
        Whether the command takes a data file as well, which may stand in its place.

    Returns
    -------
    model : estimator
    notes : Notes
    """
    from owasvm import persistence

    if not path.exists():
        raise UsageError(f"there is no model file {path}")
    if not path.is_file():
        raise UsageError(f"{path} is no file, hence no model file")
    if not zipfile.is_zipfile(path):
        order = "; the model comes first, then the data: MODEL DATA" if with_data else ""
        raise UsageError(f"{path} is no model file of 'owasvm fit'{order}")
    try:
        metadata = persistence.read_metadata(path, max_bytes=max_bytes).get("metadata")
        return persistence.load(path, max_bytes=max_bytes), Notes.of(metadata)
    except persistence.ModelSizeError as error:
        raise UsageError(f"{error} The option is --max-model-size.") from error


def apply_model(
    arguments: argparse.Namespace, model: Any, notes: Notes, options: ReadingOptions
) -> Application:
    """Read the data file and apply the model to it.

    Parameters
    ----------
    arguments : argparse.Namespace
        With the names of both files, for errors.
    model : estimator
        The model.
    notes : Notes
        What is known about its training data.
    options : ReadingOptions
        How to read the data file.

    Returns
    -------
    application : Application
    """
    # Ids are carried along as they are written: 007 is not 7.
    texts = [*notes.categories, *([] if notes.id is None else [notes.id])]
    matched = match(read_data(arguments.data, options, texts), model, notes)
    failure = f"{arguments.model} cannot be applied to {name_of(arguments.data)}"
    try:
        values = _in_blocks(_decision_function(model), matched.samples, notes.is_sparse)
        probabilities = None
        if hasattr(model, "predict_proba"):
            probabilities = _in_blocks(model.predict_proba, matched.samples, notes.is_sparse)
    except MemoryError:
        raise
    except Exception as error:
        # The steps of a pipeline come out of a file, and fail as they like.
        raise UsageError(f"{failure}: {type(error).__name__}: {error}") from error
    n_rows, n_classes = matched.samples.shape[0], model.classes_.size
    _check(values, (n_rows, n_classes) if n_classes > 2 else (n_rows,), f"{failure}: decision")
    if probabilities is not None:
        _check(probabilities, (n_rows, n_classes), f"{failure}: probability")
        chosen = probabilities.argmax(axis=1)
    else:
        chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    return Application(model.classes_, matched, values, probabilities, model.classes_[chosen])


def _decision_function(model: Any) -> Callable[[Any], Any]:
    """Decision values of a model, or of the classifiers behind its probabilities."""
    if hasattr(model, "decision_function"):
        return model.decision_function

    def decide(samples: Any) -> Any:
        last = model
        while hasattr(last, "steps"):
            samples = last[:-1].transform(samples) if len(last.steps) > 1 else samples
            last = last[-1]
        parts = [one.estimator for one in last.calibrated_classifiers_]
        return sum(_decision_function(part)(samples) for part in parts) / len(parts)

    return decide


def _in_blocks(
    function: Callable[[Any], Any], samples: Any, trained_on_sparse: bool
) -> NDArray[np.float64]:
    """Values of rows; large sparse data is filled up in blocks for models of dense data."""
    import numpy as np

    if trained_on_sparse or not is_sparse(samples):
        return np.asarray(function(samples))
    step = max(1, _BLOCK_ENTRIES // samples.shape[1])
    blocks = [
        function(samples[start : start + step].toarray())
        for start in range(0, samples.shape[0], step)
    ]
    return np.concatenate(blocks)


def _check(values: NDArray[np.float64], shape: tuple[int, ...], what: str) -> None:
    import numpy as np

    if values.shape != shape:
        raise UsageError(f"{what} values have the shape {values.shape}")
    without_value = np.isnan(values).reshape(shape[0], -1).any(axis=1)
    if without_value.any():
        raise UsageError(f"{what} value of row {int(without_value.argmax()) + 1} is missing")


def _is_unseen(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are no classes of a model, compared as text."""
    import numpy as np

    return ~np.isin(labels.astype(str), classes.astype(str))


def note_unseen_labels(applied: Application) -> None:
    """Note labels of the file that are no classes of the model."""
    import numpy as np

    truth = applied.matched.truth
    if truth is None:
        return
    unseen = _is_unseen(truth, applied.classes)
    if unseen.any():
        note(
            f"labels the model has never seen: {listing(np.unique(truth[unseen]))} in "
            f"{counted(int(unseen.sum()), 'row')}; every prediction for them counts as wrong"
        )
