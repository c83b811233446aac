"""Compute the solutions that the explorer shows.

    python -m docs.explorer.solve               # all datasets, six minutes on one core
    python -m docs.explorer.solve moons         # one of them

writes one file per dataset into ``docs/explorer/solutions``. A file is deflated and holds

- the length of the header, four bytes, little-endian;
- the header, JSON, padded with spaces so that what follows starts at a multiple of 8;
- per fit, eight-byte floats: intercept, objective, lower bound, status (index into ``statuses``);
- per fit of a linear classifier, eight-byte floats: w;
- per fit of a Gaussian classifier, four-byte floats: signed dual coefficients, one per point.

Fits are ordered by kernel, family, alpha, C; C changes fastest.
"""

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from docs.explorer.datasets import MAKERS, Dataset
from owasvm import OWASVC, ConstantClassifierWarning
from owasvm.path import fit_path
from owasvm.solution import Solution
from owasvm.weights import is_convex, owa_weights

FloatArray = NDArray[np.float64]

FOLDER = Path(__file__).resolve().parent / "solutions"
KERNELS = ("linear", "rbf")
CS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
TOL = 1e-9
# Nodes of a search tree: most proofs that succeed take less.
MAX_NODES = 40
# Descents where no proof is tried.
N_INIT = 5


@dataclass(frozen=True)
class Family:
    """A family of weights and the values of alpha that the page offers."""

    key: str
    title: str
    alphas: tuple[float, ...]


FAMILIES = (
    Family("uniform", "Uniform", (1.0,)),
    Family("basic", "Basic", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    Family("superquantile", "Superquantile", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    Family("exponential", "Exponential", (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)),
    Family("max-entropy", "Max-entropy", (0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)),
    Family("quadratic", "Quadratic", (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)),
    Family("trimmed", "Trimmed", (0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.16, 0.2)),
    Family("olympic", "Olympic", (0.6, 0.7, 0.8, 0.9, 1.0)),
)


@dataclass(frozen=True)
class Grid:
    """What is fitted: kernels, families with their alphas, values of C."""

    kernels: tuple[str, ...] = KERNELS
    families: tuple[Family, ...] = FAMILIES
    Cs: tuple[float, ...] = CS


def describe(dataset: Dataset, grid: Grid) -> dict[str, Any]:
    """Everything that decides the solutions, and what the page says about the dataset."""
    description = asdict(dataset)
    n_points = len(dataset.y)
    return {
        **description,
        "X": np.round(dataset.X, 6).tolist(),
        "y": dataset.y.astype(int).tolist(),
        "kernels": list(grid.kernels),
        "Cs": list(grid.Cs),
        "families": [
            {
                **asdict(family),
                "weights": [
                    owa_weights(n_points, family.key, alpha).tolist() for alpha in family.alphas
                ],
            }
            for family in grid.families
        ],
        "tol": TOL,
        "max_nodes": MAX_NODES,
        "n_init": N_INIT,
    }


def solve_all(dataset: Dataset, grid: Grid) -> Iterator[Solution]:
    """Solutions in the order of the file."""
    X = np.round(dataset.X, 6)
    for kernel in grid.kernels:
        for family in grid.families:
            for alpha in family.alphas:
                if is_convex(owa_weights(len(X), family.key, alpha)):
                    yield from fit_path(
                        X,
                        dataset.y,
                        grid.Cs,
                        weights=family.key,
                        alphas=alpha,
                        kernel=kernel,
                        gamma=dataset.gamma,
                        tol=TOL,
                    ).solutions[0]
                else:
                    for C in grid.Cs:
                        yield fit_falling(X, dataset, kernel, family.key, alpha, C)


def fit_falling(
    X: FloatArray, dataset: Dataset, kernel: str, family: str, alpha: float, C: float
) -> Solution:
    """Solution for weights that fall somewhere, proven where few nodes suffice."""
    solver, options = "branch-and-bound", {"max_nodes": MAX_NODES}
    # Zeros for the smallest and the largest deviations: no proof within reach, so no tree.
    if family == "olympic":
        solver, options = "dca", {"n_init": N_INIT}
    model = OWASVC(
        C,
        weights=family,
        alpha=alpha,
        kernel=kernel,
        gamma=dataset.gamma,
        tol=TOL,
        solver=solver,
        solver_options=options,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", ConstantClassifierWarning)
        return model.fit(X, dataset.y).solution_


def pack(dataset: Dataset, grid: Grid, solutions: list[Solution]) -> bytes:
    """The file of a dataset."""
    statuses = sorted({str(solution.status) for solution in solutions})
    header = {**describe(dataset, grid), "statuses": statuses}
    figures = np.array(
        [
            (one.intercept, one.objective, one.lower_bound, statuses.index(str(one.status)))
            for one in solutions
        ],
        dtype="<f8",
    )
    per_kernel = len(solutions) // len(grid.kernels)
    X = np.round(dataset.X, 6)
    blocks = [figures.tobytes()]
    for index, kernel in enumerate(grid.kernels):
        signed = (
            np.array(
                [one.dual for one in solutions[index * per_kernel : (index + 1) * per_kernel]]
            )
            * dataset.y
        )
        if kernel == "linear":
            blocks.append((signed @ X).astype("<f8").tobytes())
        else:
            blocks.append(signed.astype("<f4").tobytes())
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return zlib.compress(len(text).to_bytes(4, "little") + text + b"".join(blocks), 9)


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: its header, figures of shape (n_fits, 4), coefficients per kernel."""

    header: dict[str, Any]
    figures: FloatArray
    coefficients: dict[str, NDArray[Any]]


def unpack(packed: bytes) -> Contents:
    """Read a file."""
    content = zlib.decompress(packed)
    start = 4 + int.from_bytes(content[:4], "little")
    header: dict[str, Any] = json.loads(content[4:start])
    n_alphas = sum(len(family["alphas"]) for family in header["families"])
    per_kernel = n_alphas * len(header["Cs"])
    figures = np.frombuffer(content, "<f8", 4 * per_kernel * len(header["kernels"]), start)
    start += figures.nbytes
    coefficients = {}
    for kernel in header["kernels"]:
        kind, size = ("<f8", 2) if kernel == "linear" else ("<f4", len(header["y"]))
        block = np.frombuffer(content, kind, size * per_kernel, start)
        coefficients[kernel] = block.reshape(per_kernel, size)
        start += block.nbytes
    return Contents(header, figures.reshape(-1, 4), coefficients)


def main() -> None:
    keys = [make().key for make in MAKERS]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dataset", nargs="*", help=f"of {', '.join(keys)}; all, if none is named")
    wanted = parser.parse_args().dataset or keys
    if unknown := set(wanted) - set(keys):
        parser.error(f"no dataset {', '.join(sorted(unknown))}: there are {', '.join(keys)}.")
    FOLDER.mkdir(exist_ok=True)
    for dataset in (make() for make in MAKERS):
        if dataset.key not in wanted:
            continue
        start = time.perf_counter(), time.process_time()
        solutions = list(solve_all(dataset, Grid()))
        packed = pack(dataset, Grid(), solutions)
        (FOLDER / f"{dataset.key}.bin").write_bytes(packed)
        n_proven = sum(str(solution.status) == "optimal" for solution in solutions)
        print(
            f"{dataset.key}: {len(solutions)} fits, {n_proven} proven, {len(packed) / 1e3:.0f} kB,"
            f" {time.perf_counter() - start[0]:.0f} s, {time.process_time() - start[1]:.0f} s CPU",
            flush=True,
        )


if __name__ == "__main__":
    main()
