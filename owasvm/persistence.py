"""Model files that run no code when they are loaded.

A model file is a skops archive: a zip file with the structure of the model as JSON and its arrays
in numpy's format, without pickled objects. :func:`load` looks at the names of all types in the
file first and refuses the file, before anything of it is built, unless all of them are owasvm's
own, plain values, arrays and matrices, or estimators of scikit-learn.

How much a file unpacks to is measured before it is unpacked, and what comes out is checked before
it is handed over: types, shapes, indices, finite numbers. A file that was damaged or made up is an
error of one line, not a crash.
"""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import os
import platform
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import owasvm
from owasvm._archive import CARD, SCHEMA, TooLargeError, check_archive, read_card
from owasvm.extras import require
from owasvm.files import OutdatedModelError, replace_file

__all__ = ["MAX_BYTES", "ModelFileError", "ModelSizeError", "load", "read_metadata", "save"]

FORMAT = 1

#: Most bytes that a model file may have, packed and unpacked, unless the caller allows more.
MAX_BYTES = 2**30

_BLOCK = 1 << 20
_PURPOSE = "Saving and loading models"
# Beyond skops's own list of harmless types (values, containers, numpy arrays, the estimators of
# scikit-learn), which has no type that acts while it is built.
_TRUSTED = (
    "numpy.dtype",
    "owasvm.estimators.linear_owa_svc.LinearOWASVC",
    "owasvm.estimators.owa_svc.OWASVC",
    "owasvm.estimators.owa_svc_cv.LinearOWASVCCV",
    "owasvm.estimators.owa_svc_cv.OWASVCCV",
    "owasvm.estimators.two_step.TwoStepOWASVC",
    "owasvm.kernels.Kernel",
    "owasvm.solution.Solution",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
)
# Their compiled code follows indices out of the file without looking where they lead.
_UNCHECKED = ("sklearn.tree._tree.Tree",)


class ModelFileError(ValueError):
    """A file is no model that may be loaded, or a model cannot be saved."""


class ModelSizeError(ModelFileError):
    """A model file is larger than the caller allows, or unpacks to more."""


def save(
    model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted classifier to a file.

    The file appears complete or not at all. What a solver noted for itself (``solution_.details``)
    is not kept.

    Parameters
    ----------
    model : estimator
        A fitted classifier of owasvm, those that choose their parameters included, a
        ``CalibratedClassifierCV`` of one, or a scikit-learn pipeline that ends in either.
    path : path-like
        The file, by custom ``*.skops``.
    metadata : mapping, default=None
        Anything that JSON can hold, to be read again with :func:`read_metadata`.

    Raises
    ------
    ModelFileError
        The model is not fitted, is no classifier of owasvm, or holds something that
        :func:`load` would refuse, such as a kernel given as a function.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from owasvm import OWASVC, persistence
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> model = OWASVC(C=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "moons.skops"
    ...     persistence.save(model, path, metadata={"data": "moons"})
    ...     again = persistence.load(path)
    ...     card = persistence.read_metadata(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    >>> card["metadata"], card["classes"]
    ({'data': 'moons'}, [0, 1])
    """
    skops_io = require("skops.io", _PURPOSE, "cli")
    card = _card(model, metadata)
    archive = io.BytesIO()
    try:
        skops_io.dump(
            _change_classifiers(model, _strip_details), archive, compression=zipfile.ZIP_DEFLATED
        )
        refused = _find_refused(skops_io, archive.getvalue(), ())
    except TypeError as error:
        raise ModelFileError(f"The model cannot be saved: {_one_line(error)}") from error
    if refused:
        raise ModelFileError(
            f"The model cannot be saved, because its file could not be loaded again without "
            f"running foreign code: it holds {', '.join(refused)}. Use named weights and kernels, "
            "and no callback of your own."
        )
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as members:
        members.writestr(CARD, json.dumps(card, indent=2))
    with replace_file(path) as stream:
        stream.write(archive.getbuffer())


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[str] = (), max_bytes: int = MAX_BYTES
) -> Any:
    """Read a classifier from a file, running no code of the file.

    Everything that predictions use is checked first: shapes that belong together, finite numbers,
    indices within their matrices. Of the other steps of a pipeline that holds for scalers; steps
    of other kinds are built from whole arrays, but not checked against each other.

    Parameters
    ----------
    path : path-like
        A file of :func:`save`.
    trusted : iterable of str, default=()
        Full names of further types that may be built, for pipelines with steps of other
        packages. Name only what you know: these types can run code.
    max_bytes : int, default=2**30
        Most bytes that the file may have, and may unpack to.

    Returns
    -------
    model : estimator
        The fitted classifier, or what was saved around it.

    Raises
    ------
    ModelFileError
        The file is no model file, holds types that are not trusted, is larger than allowed, or
        its model is damaged.
    """
    data, card = _contents(path, max_bytes)
    skops_io = require("skops.io", _PURPOSE, "cli")
    _parse(path, lambda: check_archive(data, max_bytes))
    also_trusted = tuple(trusted)
    refused = _parse(path, lambda: _find_refused(skops_io, data, also_trusted))
    if refused:
        raise ModelFileError(
            f"{path} was not loaded: it holds {', '.join(refused)}, which owasvm does not trust, "
            "because building them may run foreign code or crash."
        )
    model = _parse(
        path, lambda: _restore(skops_io.loads(data, trusted=[*_TRUSTED, *also_trusted]))
    )
    classifiers = _classifiers(model)
    if not classifiers:
        raise ModelFileError(f"{path} holds a {type(model).__name__}, not a classifier of owasvm.")
    _check(path, model, classifiers, card, max_bytes)
    return model


def read_metadata(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read what a model file says about its model, without loading the model.

    Parameters
    ----------
    path : path-like
        A file of :func:`save`.
    max_bytes : int, default=2**30
        Most bytes that the file may have, and may unpack to.

    Returns
    -------
    card : dict
        ``"model"``: name of the classifier's class; ``"classes"``: labels; ``"n_features"``;
        ``"feature_names"``: list or None; ``"versions"`` of owasvm, Python, numpy and
        scikit-learn; ``"metadata"``: what was given to :func:`save`.

    Raises
    ------
    ModelFileError
        The file is no model file, or larger than allowed.
    """
    return _contents(path, max_bytes)[1]


def _card(model: Any, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a reader wants to know about a model."""
    import numpy as np
    import sklearn
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    classifiers = _classifiers(model)
    if not classifiers:
        raise ModelFileError(
            f"Only fitted classifiers of owasvm, calibrated ones and pipelines that end in either "
            f"can be saved; got {type(model).__name__}."
        )
    try:
        check_is_fitted(classifiers[0])
    except NotFittedError as error:
        raise ModelFileError("The model is not fitted yet; call fit before save.") from error
    feature_names = getattr(model, "feature_names_in_", None)
    card = {
        "format": FORMAT,
        "model": type(classifiers[0]).__name__,
        "classes": model.classes_.tolist(),
        "n_features": int(model.n_features_in_),
        "feature_names": None if feature_names is None else list(feature_names),
        "versions": {
            "owasvm": owasvm.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "metadata": dict(metadata or {}),
    }
    try:
        json.dumps(card)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"metadata must be what JSON can hold: {error}.") from error
    return card


def _classifiers(model: Any) -> list[Any]:
    """The classifiers of owasvm that a model is or ends in, none if it ends in anything else."""
    from owasvm.estimators import OWASVC, LinearOWASVC, TwoStepOWASVC

    if isinstance(model, (OWASVC, LinearOWASVC, TwoStepOWASVC)):
        return [model]
    found = [_classifiers(part) for part in _parts(model)]
    return [classifier for part in found for classifier in part] if all(found) else []


def _parts(model: Any) -> list[Any]:
    """The models that predict for a model that is made of others."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.pipeline import Pipeline

    from owasvm.estimators import OWASVCCV, LinearOWASVCCV

    if isinstance(model, Pipeline):
        return [step[-1] for step in getattr(model, "steps", [])[-1:]]
    if isinstance(model, CalibratedClassifierCV):
        return [one.estimator for one in getattr(model, "calibrated_classifiers_", [])]
    if isinstance(model, (OWASVCCV, LinearOWASVCCV)):
        return [model.best_estimator_] if hasattr(model, "best_estimator_") else []
    return []


def _change_classifiers(model: Any, change: Callable[[Any], Any]) -> Any:
    """A model with its classifiers changed; what is around them is copied, not the data in it."""
    parts = [_change_classifiers(part, change) for part in _parts(model)]
    if not parts:
        return change(model)
    changed = copy.copy(model)
    if hasattr(model, "steps"):
        changed.steps = [*model.steps[:-1], (model.steps[-1][0], *parts)]
    elif hasattr(model, "best_estimator_"):
        changed.best_estimator_ = parts[0]
    else:
        changed.calibrated_classifiers_ = [copy.copy(one) for one in model.calibrated_classifiers_]
        for one, part in zip(changed.calibrated_classifiers_, parts, strict=True):
            one.estimator = part
    return changed


def _strip_details(classifier: Any) -> Any:
    """A copy of a classifier whose solutions carry no notes of their solver."""
    if not hasattr(classifier, "solution_"):
        return classifier
    lean = copy.copy(classifier)
    lean.solution_ = _change(
        classifier.solution_, lambda solution: dataclasses.replace(solution, details={})
    )
    return lean


def _restore(model: Any) -> Any:
    """The model with the statuses of its solutions: of a status JSON keeps the text only."""
    from owasvm.solution import Status

    classifiers = _classifiers(model)
    if classifiers and not (hasattr(model, "classes_") and model.n_features_in_ > 0):
        raise ValueError("the classifier in it is not fitted")
    for classifier in classifiers:
        if hasattr(classifier, "solution_"):
            classifier.solution_ = _change(
                classifier.solution_,
                lambda solution: dataclasses.replace(solution, status=Status(solution.status)),
            )
    return model


def _change(solutions: Any, change: Callable[[Any], Any]) -> Any:
    """A solution, or each of a list of them, changed."""
    return [change(one) for one in solutions] if isinstance(solutions, list) else change(solutions)


def _find_refused(skops_io: Any, data: bytes, also_trusted: tuple[str, ...]) -> list[str]:
    """Names of the types in an archive that may not be built; nothing is built to find out."""
    untrusted = set(skops_io.get_untrusted_types(data=data))
    return sorted((untrusted | _find_unchecked(data)) - set(_TRUSTED) - set(also_trusted))


def _find_unchecked(data: bytes) -> set[str]:
    """Names of the types in an archive that skops trusts, although their content can crash."""
    with zipfile.ZipFile(io.BytesIO(data)) as members:
        schema = json.loads(members.read(SCHEMA))
    found = set()
    rest = [schema]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            found.add(f"{node.get('__module__')}.{node.get('__class__')}")
            rest.extend(node.values())
        elif isinstance(node, list):
            rest.extend(node)
    return found & set(_UNCHECKED)


def _check(
    path: str | os.PathLike[str],
    model: Any,
    classifiers: list[Any],
    card: Mapping[str, Any],
    max_bytes: int,
) -> None:
    """Refuse a model that is damaged, or another one than the file says."""
    from owasvm._model_checks import check_model

    try:
        check_model(model, classifiers, max_bytes)
        name = type(classifiers[0]).__name__
        if card.get("model") != name:
            raise ValueError(f"it is a {name}, not a {card.get('model')}")
        if card.get("classes") != model.classes_.tolist():
            raise ValueError("its labels are not those that the file announces")
    except Exception as error:
        # Like bytes, objects from anywhere fail in any way when they are looked at.
        raise ModelFileError(
            f"{path} was not loaded: its model is damaged ({_one_line(error)})."
        ) from error


def _contents(path: str | os.PathLike[str], max_bytes: int) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a model file, and its card."""
    data = _read(path, max_bytes)
    card = _parse(path, lambda: read_card(data, max_bytes))
    if not isinstance(card, dict):
        raise ModelFileError(f"{path} is no model file of owasvm: its {CARD} is no table.")
    if card.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} has model format {card.get('format')!r}, this version of owasvm reads "
            f"{FORMAT}; use the version that wrote it."
        )
    return data, card


def _read(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """The bytes of a file, which may turn out to be endless."""
    data = bytearray()
    with Path(path).open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        while size <= max_bytes and (block := stream.read(_BLOCK)):
            data += block
            size = max(size, len(data))
    if size > max_bytes:
        raise ModelSizeError(
            f"{path} was not loaded: it is larger than the {max_bytes} bytes allowed by max_bytes."
        )
    return bytes(data)


def _parse(path: str | os.PathLike[str], parse: Callable[[], Any]) -> Any:
    """What a parser makes of a file; whatever it stumbles over makes the file no model."""
    try:
        return parse()
    except TooLargeError as error:
        raise ModelSizeError(
            f"{path} was not loaded: {error} (max_bytes; raise it only for files you trust)."
        ) from error
    except OutdatedModelError as error:
        raise ModelFileError(f"{path} was not loaded. {error}") from error
    except Exception as error:
        # Bytes from anywhere fail in any way: no zip file, no JSON, missing keys, wrong types.
        raise ModelFileError(f"{path} is no model file of owasvm ({_one_line(error)}).") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
