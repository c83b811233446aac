"""The numbers that were chosen for general weights, by part."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DescentTuning:
    """Convex-concave steps and where they start."""

    # Relative accuracy of the convex steps.
    accuracy: float = 1e-8
    # Relative decrease below which descent ends, or need not begin.
    worth: float = 1e-8
    # Steps of one descent.
    max_steps: int = 100
    # A step resumes at this share of the last penalty.
    restart_share: float = 0.1
    # Intercepts tried along one direction w.
    n_intercepts: int = 48
    # Noise on coefficients, relative to the largest.
    noise: tuple[float, ...] = (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class MinorantTuning:
    """Convex problems below ours."""

    # Share of the gap that another problem must have closed to go on.
    worth: float = 1e-3
    # Steps of the line search between two minorants.
    line_points: int = 41
    # Problems tried by the local solver, and at the root of trees.
    n_local: int = 2
    n_global: int = 9


@dataclass(frozen=True)
class RelaxationTuning:
    """Convex relaxation of a box."""

    # Points of the coarse grid on which envelopes are looked for.
    n_coarse: int = 120
    # Layers above the largest deviation, and how far they reach, in multiples of it.
    n_tail: int = 12
    tail_reach: float = 8.0
    # Up to here the ends of all intervals become levels, so that separated samples are exact.
    exact_samples: int = 64
    # Intervals are worth tightening when a bound lacks at most what so many samples cost.
    worth_tightening: float = 4.0
    # A round resumes at this share of the last penalty.
    restart_share: float = 0.1
    # Newton steps of a round.
    max_steps: int = 200
    # Share of the newest round in the counts.
    damping: float = 0.5


@dataclass(frozen=True)
class EmphasisTuning:
    """Where curvature is wanted."""

    # Slacks below this need little curvature, and how little.
    near_margin: float = -0.2
    little: float = 0.05
    # Rounds of levelling, and their rate; leverages count up to a limit.
    n_rounds: int = 16
    level_rate: float = 0.2
    max_leverage: float = 10.0
    # Rate of a refit; ratios of gain to cost are softened by a share of the mean and cut off.
    fit_rate: float = 0.3
    floor: float = 1e-3
    max_ratio: float = 100.0


@dataclass(frozen=True)
class ChoiceTuning:
    """Which relaxation suits a problem."""

    # Rounds at the places looked at.
    n_rounds: int = 3
    # Emphases are fitted for up to so many directions, each worth this share of the one before.
    max_directions: int = 3
    direction_share: float = 0.9
    # The share of the gap that the bound at the incumbent may use up.
    closed_share: float = 0.6
    # Share of the time limit that may pass before the choice is made.
    share_of_time: float = 0.25
    # Steps of a fit, and how many in a row may be in vain.
    fit_steps: int = 10
    patience: int = 3
    # Weight of the past in the running mean of the spreads.
    inertia: float = 0.7
    # Numbers of kept costs in the first coarse look.
    n_kept: int = 8


@dataclass(frozen=True)
class CoordinateTuning:
    """Boxes of coordinates."""

    # Rounds per box; few samples have strong kinks and cheap rounds.
    n_rounds: int = 4
    n_rounds_few: int = 10
    # Boxes are cut before directions are taken in while widths explain this share of what lacks.
    width_share: float = 0.4
    # A box is about to be closed when it lacks at most so many times the gap that is allowed.
    within_reach: float = 10.0
    # Boxes that are certain to lack this share of the objective are split unseen.
    hopeless: float = 0.5


@dataclass(frozen=True)
class TreeTuning:
    """Which tree, and what happens before it grows."""

    # Descents at the root.
    n_descents: int = 4
    # Descents from shaken classifiers before a long search, with few samples and with many.
    n_shakes: int = 60
    n_shakes_many: int = 10
    # Up to here samples are few.
    few_samples: int = 64
    # Ways to hand out costs, as a logarithm, up to which they are enumerated implicitly.
    max_log_assignments: float = math.log(1e5)
    # With few samples two trees take turns, with so many nodes.
    coordinates_first: int = 200
    then_shares: int = 1500
    # Newton steps of convex problems that only bound handed-out costs.
    steps_to_bound: int = 60
    # Relative accuracy of convex problems that decide.
    exact: float = 1e-9


@dataclass(frozen=True)
class Tuning:
    """All of them."""

    descent: DescentTuning = field(default_factory=DescentTuning)
    minorants: MinorantTuning = field(default_factory=MinorantTuning)
    relaxation: RelaxationTuning = field(default_factory=RelaxationTuning)
    emphasis: EmphasisTuning = field(default_factory=EmphasisTuning)
    choice: ChoiceTuning = field(default_factory=ChoiceTuning)
    coordinates: CoordinateTuning = field(default_factory=CoordinateTuning)
    tree: TreeTuning = field(default_factory=TreeTuning)
