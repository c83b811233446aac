"""When an inner loop ends, and which penalty is next: for interpreted and compiled loops alike."""

import math

from owasvm._jit import register_jitable

__all__ = ["NEAR_ENOUGH", "ROUNDING", "choose_growth", "choose_share", "ends_inner_loop"]

#: Gaps below this, relative to the objective, are rounding.
ROUNDING = 1e-14
#: Whole steps are looked at where the residual is within so many times the gap to prove.
NEAR_ENOUGH = 10.0


@register_jitable
def ends_inner_loop(
    steps: int,
    squared: float,
    imbalance: float,
    movement: float,
    penalty: float,
    gap: float,
    inner_share: float,
    solved_share: float,
) -> bool:
    """Whether the multiplier is to move, `squared` and `imbalance` being left of the gradient."""
    distance = inner_share * movement
    near = squared <= distance * distance and abs(imbalance) <= distance * math.sqrt(penalty)
    return (steps > 0 and near) or squared + abs(imbalance) <= solved_share * gap


@register_jitable
def choose_share(n_iter: float, first: float, last: float, patience: float) -> float:
    """Share of the movement at which an inner loop ends after so many steps in all.

    It grows in proportion to them, from the first value to the last.
    """
    return min(last, first * max(1.0, n_iter / patience))


@register_jitable
def choose_growth(
    shrinks: bool,
    steps: int,
    gap_ratio: float,
    growths: tuple[tuple[int, float], ...],
    fast_round: float,
    shrink: float,
    most: float,
) -> float:
    """Factor for the penalty after an inner loop of so many steps, `most` at the most.

    `shrinks`: it met its limit, or rounding has eaten the descent. A smaller penalty gives digits
    back.
    """
    if shrinks:
        return shrink
    growth = 1.0
    # The first one that allows for so many steps.
    for limit, factor in growths[::-1]:
        if steps <= limit:
            growth = factor
    if gap_ratio < fast_round:
        growth = min(growth, 2.0 if steps <= 2 else 1.0)
    return min(growth, most)
