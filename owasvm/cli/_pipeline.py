"""From the columns of a table to the features of a classifier: the pipeline that is saved."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from owasvm.cli._errors import UsageError, counting, note
from owasvm.cli._tables import TableData, are_dates

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALINGS = ("standard", "minmax", "maxabs", "none")

# Up to here a dense matrix, 128 MiB, is no burden, and faster.
_DENSE_ENTRIES = 2**24
_CALIBRATION_FOLDS = 5


def add_pipeline_options(parser: argparse.ArgumentParser, *, is_saved: bool = True) -> None:
    """Add the options that say how columns become features.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Of the command.
    is_saved : bool, default=True
        Whether the command writes a model file, which keeps the steps.
    """
    title = "from columns to features"
    group = parser.add_argument_group(f"{title}, kept in the model file" if is_saved else title)
    group.add_argument(
        "--categorical",
        metavar="COLUMN",
        action="append",
        default=[],
        help="columns to take as categories, one feature of 0 and 1 for each: 'auto', columns of "
        "text (default); 'none', text is an error; or names, these columns beside those of text; "
        "several with commas, or the option several times",
    )
    group.add_argument(
        "--missing",
        choices=("impute", "error"),
        default="impute",
        help="missing numbers (empty cells, NA, nan, ?): impute, fill in the median of the "
        "training rows (default), or error; an empty cell of a categorical column is a category "
        "of its own",
    )
    group.add_argument(
        "--scale",
        choices=SCALINGS,
        help="scaling of the numbers, learnt from the training rows: standard (mean 0, variance "
        "1), minmax (to [-1, 1]), maxabs (zero stays zero) or none (default: standard; none for "
        "svmlight files, which usually come scaled)",
    )


def choose_categories(
    data: TableData, names: Sequence[str], arguments: argparse.Namespace
) -> list[str]:
    """Which columns are categories.

    Parameters
    ----------
    data : TableData
        The training data.
    names : sequence of str
        The columns that become features.
    arguments : argparse.Namespace
        Options of :func:`add_pipeline_options`.

    Returns
    -------
    categories : list of str
    """
    words = set(arguments.categorical) & ({"auto", "none"} - set(data.columns))
    asked = [text for text in arguments.categorical if text not in words]
    if "none" in words and len(arguments.categorical) > 1:
        raise UsageError("--categorical none means no column at all; leave the other ones out")
    named = data.names_in(asked, "--categorical")
    for name in named:
        if name not in names:
            raise UsageError(
                f"--categorical {name!r} is the target, the id or dropped, or named by "
                "--rank-groups: no feature"
            )
    if "none" in words:
        return []
    chosen = [name for name in names if name in named or data.is_text(name)]
    for name in chosen:
        _check_variety(data, name)
    return chosen


def _check_variety(data: TableData, name: str) -> None:
    """Refuse text that is different in every row; note where it nearly is, and dates."""
    texts = data.texts(name)
    n_categories = len(set(texts))
    if are_dates(text for text in texts if text):
        remedy = "turn dates into numbers beforehand, such as days since the first, or leave the "
        remedy += f"column out: --drop {name!r}"
        if n_categories == texts.size:
            raise UsageError(
                f"column {name!r} of {data.name} has another date in every row; {remedy}"
            )
        number = "one category" if n_categories == 1 else f"{n_categories} categories"
        note(f"column {name!r} holds dates, {number} here; {remedy}")
        return
    if n_categories == texts.size:
        raise UsageError(
            f"column {name!r} of {data.name} has another text in every row, from which nothing "
            f"can be learnt; leave it out: --drop {name!r}, or carry it along: --id {name!r}"
        )
    if 2 * n_categories > texts.size:
        note(
            f"column {name!r} has {n_categories} categories in {texts.size} rows, each of which "
            f"becomes a feature; --drop {name!r} leaves it out"
        )


def make_frame(
    data: TableData, names: Sequence[str], categories: Collection[str], *, fills: bool
) -> Any:
    """The features of a table: numbers, NaN where they are missing, and text.

    Parameters
    ----------
    data : TableData
        The table.
    names : sequence of str
        Columns, in order.
    categories : collection of str
        Those of them that are text.
    fills : bool
        Whether missing numbers will be filled in; else they are an error.

    Returns
    -------
    frame : DataFrame
    """
    import numpy as np
    import pandas as pd

    numbers = [name for name in names if name not in categories]
    matrix = np.empty((len(data.frame), len(numbers)))
    for position, name in enumerate(numbers):
        matrix[:, position] = data.numbers(name, may_miss=fills)
    frame = pd.DataFrame(matrix, columns=numbers)
    if not categories:
        return frame
    # As objects, text stays text in every version of pandas.
    texts = {
        name: pd.Series(data.texts(name), dtype=object) for name in names if name in categories
    }
    return pd.concat([frame, pd.DataFrame(texts)], axis=1)[list(names)]


def note_gaps(frame: Any) -> None:
    """Note the numbers of a frame of :func:`make_frame` that will be filled in."""
    gaps = frame.isna().sum()
    if gaps.any():
        note(
            "missing values are filled in with the median of the training rows: "
            + counting(dict(gaps.items()))
        )


def make_features(
    frame: Any, categories: Sequence[str], scaling: str, *, fills: bool
) -> list[Any]:
    """Steps of a pipeline from a frame to features.

    Parameters
    ----------
    frame : DataFrame
        The training data.
    categories : sequence of str
        Its columns of text.
    scaling : str
        One of ``SCALINGS``.
    fills : bool
        Whether missing numbers are filled in.

    Returns
    -------
    steps : list of transformers
        Not fitted.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    steps = [SimpleImputer(strategy="median", keep_empty_features=True)] if fills else []
    steps += make_scaler(scaling)
    if not categories:
        return steps
    n_categories = sum(frame[name].nunique() for name in categories)
    is_dense = len(frame) * n_categories <= _DENSE_ENTRIES
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=not is_dense)
    parts = [("categories", encoder, list(categories))]
    numbers = [name for name in frame.columns if name not in categories]
    if numbers:
        parts.insert(0, ("numbers", make_pipeline(*steps) if steps else "passthrough", numbers))
    return [ColumnTransformer(parts, sparse_threshold=1.0)]


def make_scaler(scaling: str) -> list[Any]:
    """The step that scales numbers, none for ``"none"``."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    scalers = {
        "standard": StandardScaler(),
        "minmax": MinMaxScaler(feature_range=(-1.0, 1.0)),
        "maxabs": MaxAbsScaler(),
    }
    return [] if scaling == "none" else [scalers[scaling]]


def make_model(features: Sequence[Any], classifier: Any) -> Any:
    """A classifier behind the steps that make its features."""
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    if not features:
        return clone(classifier)
    return make_pipeline(*(clone(step) for step in features), clone(classifier))


def fit_model(model: Any, samples: Any, labels: NDArray[Any], groups: NDArray[Any] | None) -> Any:
    """Fit a model of :func:`make_model`; groups go to its classifier."""
    if groups is None:
        return model.fit(samples, labels)
    prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return model.fit(samples, labels, **{f"{prefix}groups": groups})


def transform(features: Sequence[Any], samples: Any) -> Any:
    """Samples as features, the steps learnt from them."""
    from sklearn.base import clone

    for step in features:
        samples = clone(step).fit_transform(samples)
    return samples


def calibrate(classifier: Any, labels: NDArray[Any]) -> Any:
    """A classifier with probabilities, learnt from decision values of rows it has not seen.

    Parameters
    ----------
    classifier : estimator
        Not fitted.
    labels : ndarray of shape (n_samples,)
        Labels of the training data: no fold can do without a class.

    Returns
    -------
    calibrated : CalibratedClassifierCV
        Not fitted.
    """
    import numpy as np
    from sklearn.calibration import CalibratedClassifierCV

    smallest = int(np.unique(labels, return_counts=True)[1].min())
    if smallest < 2:
        raise UsageError(
            "--proba needs two rows or more of every class; add rows, leave the class out, or do "
            "without --proba"
        )
    n_folds = min(_CALIBRATION_FOLDS, smallest)
    return CalibratedClassifierCV(classifier, cv=n_folds, ensemble=False)
