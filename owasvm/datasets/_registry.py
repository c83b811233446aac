"""What is known about the six datasets."""

from __future__ import annotations

from dataclasses import dataclass

_FETCHED = (
    "Scaled to [-1, 1] on the whole set in the LIBSVM collection, which is where it is fetched "
    "from; owasvm does not redistribute it."
)


@dataclass(frozen=True)
class Info:
    """One dataset.

    Parameters
    ----------
    name : str
        Name for :func:`owasvm.datasets.load`.
    label : str
        Name printed in the tables of the paper.
    title : str
        Complete name.
    n_samples, n_features : int
        Shape of ``X``.
    n_positives : int
        Number of labels +1.
    positive : str
        What the label +1 stands for.
    source : str
        Where it comes from and on which terms.
    file : str or None, default=None
        Name of the file, in svmlight format; None for data that scikit-learn carries.
    sha256 : str or None, default=None
        Checksum of the file.
    """

    name: str
    label: str
    title: str
    n_samples: int
    n_features: int
    n_positives: int
    positive: str
    source: str
    file: str | None = None
    sha256: str | None = None


#: The six datasets by name, in the order of the paper.
REGISTRY: dict[str, Info] = {
    info.name: info
    for info in (
        Info(
            name="ionosphere",
            label="IONO",
            title="Ionosphere",
            n_samples=351,
            n_features=34,
            n_positives=225,
            positive="good radar returns",
            source=f"UCI repository, Ionosphere. {_FETCHED}",
            file="ionosphere_scale",
            sha256="f7751584264819b6ea908d513180cec6f9d9fad0d54e7f5693407da1e2eaece1",
        ),
        Info(
            name="wbc",
            label="WBC",
            title="Wisconsin Breast Cancer",
            n_samples=569,
            n_features=30,
            n_positives=357,
            positive="benign tumours",
            source=(
                "UCI repository, Breast Cancer Wisconsin (Diagnostic). Part of scikit-learn; "
                "scaled to [-1, 1] on the whole set when loaded."
            ),
        ),
        Info(
            name="australian",
            label="AUS",
            title="Australian Credit",
            n_samples=690,
            n_features=14,
            n_positives=307,
            positive="the class coded 1 in the original",
            source=f"UCI repository, Statlog (Australian Credit Approval). {_FETCHED}",
            file="australian_scale",
            sha256="86799bcc4dbcd41929a514fa181d1c1a40e01f009dee139d4141a194d7ecd9e3",
        ),
        Info(
            name="diabetes",
            label="DIA",
            title="Pima Indians Diabetes",
            n_samples=768,
            n_features=8,
            n_positives=500,
            positive="tested negative",
            source=f"UCI repository, Pima Indians Diabetes. {_FETCHED}",
            file="diabetes_scale",
            sha256="0c07eb4c49e7a8ffb9c9f25095ac3022df2ca85b0dcb7d294c3ddea69f392cba",
        ),
        Info(
            name="german",
            label="GC",
            title="German Credit",
            n_samples=1000,
            n_features=24,
            n_positives=300,
            positive="bad credit",
            source=f"UCI repository, Statlog (German Credit Data), numeric. {_FETCHED}",
            file="german.numer_scale",
            sha256="97637cc6b994bd3fa78999c771bc044bea7a0cdf91d43b6ecfd10f7e7c4ebc82",
        ),
        Info(
            name="splice",
            label="SPL",
            title="Splice",
            n_samples=1000,
            n_features=60,
            n_positives=517,
            positive="the class coded +1 in the original",
            source=f"Delve, splice junctions of genes, training part. {_FETCHED}",
            file="splice_scale",
            sha256="acf38472f2077e7d40f1a551f0e920298aedbcb73c50ae481ec64976b5e54940",
        ),
    )
}
