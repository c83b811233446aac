"""What the Newton solver leaves to measurement, in one place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "ITERATIVE", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """Numbers that change how fast the solver is, and nothing that it proves.

    Percentages are Newton steps with half and with twice the value, relative to the default, in
    ``benchmarks/sensitivity.py``: 144 fits, 3,376 steps, no missed gap with any of them. Steps are
    chaotic: what lies below five percent is noise. They were measured before `first_penalty`,
    `growths`, `fast_round` and `inner_share` took their present values (1, 10 4 2, 0.25 and 0.5
    before): these take 30 % of the time off 135 fits of ten other data sets.
    """

    # -- penalties ----------------------------------------------------------------------------
    # The first penalty is what the curvature of 1/2 |w|^2 calls for, this many times (-3, -5 %),
    first_penalty: float = 10.0
    # within these multiples of the mean cost: beyond the second the loss is hardly smoothed
    # (0, 0 % and +1, 0 %).
    least_first_penalty: float = 1e-5
    most_first_penalty: float = 1e2
    # The last penalty is the larger of these multiples of curvature and mean cost: beyond, the
    # multiplier a + penalty * u loses the digits of a (0, 0 %: seldom met).
    max_penalty: float = 1e10
    max_cost_penalty: float = 1e5
    # A large penalty makes the outer loop converge in few rounds and the inner loops long: it is
    # raised by these factors after inner loops of at most so many steps, and lowered after one
    # that met its limit or where rounding has eaten the descent (0, 0 %).
    growths: tuple[tuple[int, float], ...] = ((2, 5.0), (5, 2.0), (10, 1.5))
    shrink: float = 0.1
    # Where the gap fell to this share in one round the outer loop is fast anyway (0, -1 %).
    fast_round: float = 0.7
    # A warm start resumes at this share of the last penalty (63 paths with 0.1, 0.15 and 0.3:
    # 1.04, 1.02 and 1.02 times the time). Slacks below the second number count as on the margin,
    # where coefficients move less than costs (0, 0 %).
    restart_share: float = 0.2
    on_margin: float = 1e-4
    # Where coefficients that go on along C as they have come move w by less than this share of its
    # squared norm, the next solution starts from there: paths of linear models with many samples
    # take a third of the steps then, with any share from 1e-4 to 0.1. Kernels with hundreds of
    # samples move more, and going on would cost them a quarter more steps. The penalty resumes at
    # this share of the last one, per unit of cost (steps of 135 solves with 0.05, 0.15, 0.3, 0.5:
    # 1,808, 1,798, 1,705, 2,120).
    steady: float = 1e-2
    steady_share: float = 0.3

    # -- inner loops --------------------------------------------------------------------------
    # An inner loop ends when its residual is this share of the movement of the multiplier (time of
    # those 135 fits with 1, 2, 4: 17.7, 12.8, 12.7 s). Above 1 no theorem says that the outer
    # loop converges; inner loops get longer where it does not, and another method is at hand.
    inner_share: float = 2.0
    # Fits that take many steps are those where slacks pass many ranks at a time, and what an inner
    # loop is solved to is worth little there: after the second number of steps the share grows
    # with them, up to the first, and the penalty no more than this at a time. 26 slow fits, steep
    # weights or a large C, take two thirds of the time and steps, 200 others as many as before.
    last_share: float = 10.0
    patience: float = 20.0
    late_growth: float = 2.0
    # or its errors this share of the gap: then the multiplier must move (0, 0 %).
    solved_share: float = 1e-8
    # Steep weights need long inner loops; beyond these a smaller penalty helps more (0, 0 %).
    max_inner_steps: int = 30
    # A line search ends when the slope has fallen to this share of its first value (-4, +5 %; half
    # of it costs as many evaluations more).
    slope_share: float = 0.2
    # Where the step of the intercept was limited it goes on while more than this is left (0, 0 %).
    still_falling: float = 0.5
    # Relative accuracy of iteratively solved systems: that of the gap, within these (-1, -1 % and
    # 0, 0 %).
    loosest_system: float = 1e-4
    tightest_system: float = 1e-9

    # -- rescue -------------------------------------------------------------------------------
    # Patience with Newton steps before the interior point method takes over, as multiples of what
    # was chosen for it,
    rescue_share: float = 1.0
    # so many times as much once the gap is below so many times the tolerance, or where its levels
    # would be too coarse to prove it,
    more_patience: float = 4.0
    nearly_done: float = 30.0
    # or after so many steps, twice as many near the end. (120 would save a tenth on 22 slow fits,
    # and take ten times as long on narrow kernels, whose steps cost next to nothing.)
    rescue_steps: int = 250

    # -- certificates -------------------------------------------------------------------------
    # The exact intercept is searched for once the gap without it is so many times the tolerance:
    # a search costs as much as a step, and gains less than that (0, 0 %).
    worth_a_search: float = 1.5
    # An estimated gap of this share of the tolerance should have been proven by now (0, 0 %).
    converged_share: float = 0.01
    # Up to so many samples problems are solved on to rounding level: most often a handful of
    # cheap steps buy decision values, not only objectives, that agree with those of any other
    # exact solution (0, +84 %: beyond, it costs too much), with this share of the steps so far,
    # and at least so many: a smooth loss may take eight steps to its tolerance, and three or four
    # more (+1 % of the time of small fits).
    polish_samples: int = 256
    polish_share: float = 0.25
    polish_steps: int = 5
    # Certificates that only rounding keeps from the tolerance, or that do not get better although
    # the estimate says that nothing is left to gain, before the search for a better one ends: a
    # few, for each costs a step and a certificate (0, 0 %).
    hopeless_certificates: int = 5
    idle_certificates: int = 12


#: What the solver uses.
DEFAULT = Tuning()
#: And where conjugate gradients solve its systems: a first penalty with which many samples tie, so
#: that a step knows about ranks, and shorter moves of the multiplier. Time of 20 fits of texts,
#: relative to the default: 0.85 with C = 0.1, 0.96 with C = 1.
ITERATIVE = Tuning(first_penalty=1.0, inner_share=1.0)
