"""
=====================================================
Choosing weights by how much the worst samples matter
=====================================================

Deviations are sorted in ascending order and ``weights[k]`` meets the k-th smallest one. A family
of weights is easiest to read through its share function: ``G(t)`` is the share of the total
weight that the worst share ``t`` of the samples carries.
"""

# %%
# Uniform weights have ``G(t) = t``. Above this diagonal the worst samples matter more than their
# number (risk-averse), below it less (robust). The model is convex exactly when ``G`` is concave,
# that is, when the weights never fall.

import matplotlib.pyplot as plt
import numpy as np

from owasvm.weights import is_convex, owa_weights, share_function

n_samples = 300
families = {
    "uniform": (None, "#888888", "-"),
    "basic": (0.5, "#0072B2", "-"),
    "superquantile": (0.3, "#D55E00", "--"),
    "trimmed": (0.1, "#009E73", "-."),
    "quadratic": (0.8, "#222222", ":"),
}

print("family          alpha  convex  weight of the worst 10%")
for family, (alpha, _, _) in families.items():
    weights = owa_weights(n_samples, family, alpha)
    worst = share_function(family, alpha, total=n_samples)([0.1])[0]
    print(f"{family:15s} {alpha!s:>5s}  {is_convex(weights)!s:6s}  {worst:.0%}")

# %%
# A callable quantifier ``Q(r)`` on [0, 1] or an array of weights works the same way. Here is the
# mean of all deviations mixed with the mean of the worst 10 %:


def mixture(r):
    """Half of the weight to everybody, half of it to the worst 10 %."""
    return 0.5 * r + 0.5 * np.minimum(r / 0.1, 1.0)


mixed = owa_weights(n_samples, mixture)
print(f"mixture: convex {is_convex(mixed)}, from {mixed[0]:.2f} to {mixed[-1]:.2f}")

# %%
# First: the weights by rank. Second: the share functions. They tell what a family does, not
# which one your data want: that is a question for cross-validation.

_, by_rank = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
_, shares = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
ranks = (np.arange(n_samples) + 0.5) / n_samples
t = np.linspace(0.0, 1.0, 401)
for family, (alpha, colour, style) in families.items():
    label = family if alpha is None else f"{family} {alpha:g}"
    drawing = {"color": colour, "linestyle": style, "linewidth": 2, "label": label}
    by_rank.plot(ranks, owa_weights(n_samples, family, alpha), **drawing)
    shares.plot(t, share_function(family, alpha)(t), **drawing)
mixed_style = {"color": "#CC79A7", "linestyle": (0, (5, 1)), "linewidth": 2, "label": "mixture"}
by_rank.plot(ranks, mixed, **mixed_style)
shares.plot(t, share_function(mixture)(t), **mixed_style)
by_rank.set(xlim=(0, 1), ylim=(0, 6), ylabel="weight (mean 1)")
by_rank.set(xlabel="share of samples with a smaller deviation")
shares.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="worst share t of the samples")
shares.set(ylabel="its share G(t) of the weight", aspect="equal")
by_rank.legend(loc="upper left")
plt.show()
