"""Linear models: time and memory of an exact OWA-SVM against LinearSVC on many rows.

In one run and one thread: ``LinearSVC(loss="hinge", max_iter=10000)`` at its default tolerance,
and ``LinearOWASVC(tol=1e-6)`` from a cold start.

dense
    Gaussian features, d = 50, labels from a noisy linear rule, float64 and float32, which
    LinearSVC turns into float64.
memory
    Of the same fits in processes of their own: the largest resident memory after the data were
    drawn and after the fit, less that after a small fit. LinearSVC copies float32 data to float64.
sparse
    500,000 texts of about 50 out of 50,000 words with frequencies as in Zipf's law, labels from a
    sparse linear rule with noise.
tfidf
    2,000 texts of 3,000 words from two topics.
growth
    Seconds of the processor against n, dense, C = 1.

LinearSVC often stops at its iteration limit, without the accuracy it was asked for; its warning is
counted. Times are those of the processor, which other processes disturb less than the clock.

    python benchmarks/linear_speed.py [--parts dense,memory,sparse,tfidf,growth] [--samples N]
"""

from common import FloatArray, best_time, machine, peak_memory

import argparse
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from owasvm import LinearOWASVC

PARTS = ("memory", "tfidf", "growth", "sparse", "dense")
WEIGHTS = (("basic", 0.6), ("superquantile", 0.3))
N_FEATURES = 50
BLOCK = 10_000


def draw_dense(n_samples: int, dtype: str) -> tuple[Any, FloatArray]:
    """Some rows at a time: no second copy ever exists."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=N_FEATURES) / np.sqrt(N_FEATURES)
    X, scores = np.empty((n_samples, N_FEATURES), dtype=dtype), np.empty(n_samples)
    for first in range(0, n_samples, BLOCK):
        part = rng.normal(size=(min(BLOCK, n_samples - first), N_FEATURES))
        X[first : first + BLOCK] = part
        scores[first : first + BLOCK] = part @ w
    return X, np.where(scores + 0.5 * rng.normal(size=n_samples) > 0, 1.0, -1.0)


def draw_texts(n_texts: int, n_words: int, n_drawn: int) -> tuple[Any, FloatArray]:
    """Words by Zipf's law, TF-IDF, a tenth of the words decides."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1.0 / np.arange(1, n_words + 1))
    words = np.searchsorted(shares, shares[-1] * rng.random((n_texts, n_drawn)))
    places = np.arange(0, words.size + 1, n_drawn)
    ones = np.ones(words.size)
    X = sp.csr_matrix((ones, words.astype(np.int32).ravel(), places), shape=(n_texts, n_words))
    X.sum_duplicates()
    X = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    w = np.where(rng.random(n_words) < 0.1, rng.normal(size=n_words), 0.0)
    scores = X @ w
    scores = (scores - np.median(scores)) / scores.std()
    return X, np.where(scores + 0.3 * rng.normal(size=n_texts) > 0, 1.0, -1.0)


def draw_topics(difference: float) -> tuple[Any, FloatArray]:
    """Texts of two topics, whose words differ in frequency by log-normal factors."""
    rng = np.random.default_rng(0)
    n_texts, n_words = 2_000, 3_000
    y = rng.choice([-1.0, 1.0], n_texts)
    topics = np.exp(difference * rng.normal(size=(2, n_words))) / np.arange(1, n_words + 1)
    topics /= topics.sum(axis=1, keepdims=True)
    lengths = rng.poisson(80, n_texts) + 5
    counts = [
        rng.multinomial(length, topics[int(label > 0)])
        for length, label in zip(lengths, y, strict=True)
    ]
    return TfidfTransformer(sublinear_tf=True).fit_transform(sp.csr_matrix(np.array(counts))), y


def cpu_time(function: Callable[[], Any]) -> float:
    """Least seconds of the processor in a few calls, one if they take long."""
    return best_time(function, clock=time.process_time)[0]


def time_rival(X: Any, y: FloatArray, C: float) -> tuple[float, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        rival = LinearSVC(loss="hinge", C=C, max_iter=10000)
        seconds = cpu_time(lambda: rival.fit(X, y))
    return seconds, "stopped at its limit" if caught else "converged"


def compare(name: str, X: Any, y: FloatArray, C: float, rival: tuple[float, str]) -> None:
    for weights, alpha in WEIGHTS:
        ours = LinearOWASVC(C, weights=weights, alpha=alpha, tol=1e-6)
        seconds = cpu_time(lambda ours=ours: ours.fit(X, y))
        print(
            f"{name}  C {C:5g}  {weights:13s} {alpha}  LinearSVC {rival[0]:8.3f} s ({rival[1]})  "
            f"LinearOWASVC {seconds:7.3f} s  ratio {seconds / rival[0]:6.2f}  "
            f"steps {ours.n_iter_:3d}  gap {ours.gap_:.1e}",
            flush=True,
        )


def compare_dense(n_samples: int) -> None:
    for C in (0.01, 1.0):
        X, y = draw_dense(n_samples, "float64")
        rival = time_rival(X, y, C)
        compare(f"dense float64 n {n_samples}", X, y, C, rival)
        compare(f"dense float32 n {n_samples}", X.astype(np.float32), y, C, rival)


def compare_memory(n_samples: int) -> None:
    for dtype in ("float64", "float32"):
        command = [sys.executable, __file__, "--samples", str(n_samples), "--fit", dtype]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")


def measure_memory(n_samples: int, dtype: str) -> None:
    """In a process of its own."""
    LinearOWASVC().fit(*draw_dense(500, dtype))
    before = peak_memory()
    X, y = draw_dense(n_samples, dtype)
    data = peak_memory() - before
    LinearOWASVC().fit(X, y)
    total = peak_memory() - before
    print(
        f"memory {dtype} n {n_samples}  X {X.nbytes / 2**20:.0f} MiB  X and y as drawn "
        f"{data / 2**20:.0f} MiB  with the fit {total / 2**20:.0f} MiB  "
        f"the fit alone / X {(total - data) / X.nbytes:.2f}"
    )


def compare_sparse(n_samples: int) -> None:
    X, y = draw_texts(n_samples // 2, 50_000, 68)
    share = X.nnz / X.shape[0] / X.shape[1]
    name = f"sparse {X.shape[0]} x {X.shape[1]} ({100 * share:.2f} %)"
    for C in (0.1, 1.0):
        compare(name, X, y, C, time_rival(X, y, C))


def compare_topics() -> None:
    for difference in (0.3, 0.5, 1.0):
        X, y = draw_topics(difference)
        for C in (0.1, 1.0, 10.0):
            compare(f"tfidf {difference}", X, y, C, time_rival(X, y, C))


def compare_growth(n_samples: int) -> None:
    sizes = [n_samples // 100, n_samples // 10, n_samples]
    for weights, alpha in WEIGHTS:
        ours = LinearOWASVC(weights=weights, alpha=alpha)
        seconds = []
        for size in sizes:
            X, y = draw_dense(size, "float64")
            seconds.append(cpu_time(lambda X=X, y=y, ours=ours: ours.fit(X, y)))
            print(f"growth {weights:13s} n {size:7d}  {seconds[-1]:.3f} s  steps {ours.n_iter_}")
        exponent = np.log(seconds[-1] / seconds[0]) / np.log(sizes[-1] / sizes[0])
        print(f"growth {weights:13s} exponent {exponent:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="some of them, with commas")
    parser.add_argument("--samples", type=int, default=1_000_000, help="dense rows")
    parser.add_argument("--fit", choices=("float64", "float32"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fit:
        measure_memory(arguments.samples, arguments.fit)
        return
    print(machine())
    LinearOWASVC().fit(*draw_dense(500, "float64"))
    LinearOWASVC().fit(*draw_dense(500, "float32"))
    parts: dict[str, Callable[[], None]] = {
        "memory": lambda: compare_memory(arguments.samples),
        "tfidf": compare_topics,
        "growth": lambda: compare_growth(arguments.samples),
        "sparse": lambda: compare_sparse(arguments.samples),
        "dense": lambda: compare_dense(arguments.samples),
    }
    for part in arguments.parts.split(","):
        parts[part]()


if __name__ == "__main__":
    main()
