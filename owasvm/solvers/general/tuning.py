"""The numbers that were chosen for general weights, by part.

Figures in brackets are those of ``benchmarks/general_sensitivity.py``: by how much gaps at a limit
of 60 nodes grow with half and with twice the number. One problem of twelve that closes or does not
moves the mean by a factor of 1.4, so less than that says that the number matters little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class DescentTuning:
    """Convex-concave steps and where they start."""

    # Relative accuracy of the convex steps [0.99, 1.00]; twice as much loses 9e-6 of an objective.
    accuracy: float = 1e-8
    # Relative decrease below which descent ends, or need not begin: what steps are solved to.
    worth: float = 1e-8
    # Steps of one descent, for those that never end; the longest of 1,714 had 18.
    max_steps: int = 100
    # Intercepts tried along one direction w [1.00, 1.00]: they cost less than a step.
    n_intercepts: int = 48
    # Noise on coefficients, relative to the largest: objectives within 3e-10 [1.00, 1.00].
    noise: tuple[float, ...] = (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class ExplorationTuning:
    """Short descents; ``benchmarks/robust_search.py`` measures what they find."""

    # Samples explored at most: their Gram matrix takes 8 MB.
    max_samples: int = 1000
    # Work that a unit of effort allows, in kernel values looked at (0.3 ns each), and more of it
    # per pair of samples: about two fits with rising weights and 100 to 700 samples, where these
    # are fast. Training and ranking count as so many values each time, and more of them per
    # sample, so does forgetting; polishing counts as a share of a unit.
    allowance: tuple[float, float] = (3.8e7, 190.0)
    work_of_ranking: tuple[int, int] = (110_000, 320)
    work_of_forgetting: tuple[int, int] = (90_000, 260)
    # Sample weights make ranking so many times as long.
    weighted_ranking: int = 3
    work_of_polishing: float = 0.25
    # Trails per unit of effort at most.
    max_trails: int = 4
    # Shares of all costs at which the trails begin and go on, in turns. Where only one or two
    # trails are affordable those in stages end lower.
    stages: tuple[tuple[float, ...], ...] = ((0.2, 1.0), (0.03, 0.3, 1.0), (1.0,))
    # Starts of a trail on a few samples of each class, and how few at least and less than.
    n_few: int = 4
    few: tuple[int, int] = (2, 8)
    # Steps of a first descent, and of those that are to end by themselves.
    n_short: int = 2
    n_long: int = 20
    # Violation left by a first descent and by all others, in units of the margin: the more is
    # left, the more shakes there are for the same work.
    rough: float = 0.05
    accuracy: float = 0.01
    # Relative decrease below which a descent has ended.
    worth: float = 1e-4
    # Exchanges of one training at most, in multiples of the samples.
    max_exchanges: int = 30
    # Shakes of a trail, and more of them where it is the best so far.
    n_shakes: int = 30
    n_more_shakes: int = 60
    # Relative gap up to which one trail in vain is enough: twelve found nothing better than the
    # first descent with quadratic 0.8 and 500 to 2,000 samples.
    little_to_gain: float = 0.1
    # Relative gap up to which there is no trail: of 109 random problems twelve found more than
    # 1e-4 once, and with linear models and a large C one takes hundreds of convex fits.
    nothing_to_gain: float = 0.01
    # Share of the samples with a coefficient that a shake forgets, small as often as large by
    # orders of magnitude: up to 0.1, 11 of 192 searches miss what 3,000 starts find; evenly up to
    # 0.3, 6, others of them.
    forgotten: tuple[float, float] = (0.02, 0.4)
    # A shaken descent is given up if its first step leaves this multiple of the objective: nine of
    # ten that end lower have 1.02 or less by then.
    hopeless: float = 1.05


@dataclass(frozen=True)
class MinorantTuning:
    """Convex problems below ours."""

    # Share of the gap that another problem must have closed to go on [1.00, 1.00].
    worth: float = 1e-3
    # Steps of the line search between two minorants [1.01, 1.01]; without it 1.04.
    line_points: int = 41
    # Problems tried by the local solver, which is to cost a few convex fits only.
    n_local: int = 2
    # Problems tried at the root of trees [1.06, 1.00].
    n_global: int = 9


@dataclass(frozen=True)
class RelaxationTuning:
    """Convex relaxation of a box."""

    # Points of the coarse grid on which envelopes are looked for [1.00, 1.01].
    n_coarse: int = 120
    # Layers above the largest deviation [1.00, 1.42]; 1.48 with a single one.
    n_tail: int = 12
    # How far they reach, in multiples of it: none where no sample can be [0.99, 1.00].
    tail_reach: float = 8.0
    # Intervals are tightened when a bound lacks at most what so many samples cost [0.93, 1.00]:
    # never is 1.18, and always costs 7 % of the time with hundreds of samples.
    worth_tightening: float = 4.0
    # Largest curvature worth having, in multiples of the largest cost: beyond it coordinates only
    # get stiff, with small C [nodes 0.97, 1.04]; without a limit 1.08 times the nodes.
    useful_curvature: float = 10.0
    # Share of the newest round in the counts [1.09, 1.99].
    damping: float = 0.5


@dataclass(frozen=True)
class EmphasisTuning:
    """Where curvature is wanted."""

    # Slacks below this need little curvature [1.01, 1.01], and how little [0.99, 0.98].
    near_margin: float = -0.2
    little: float = 0.05
    # Rate of a refit [0.71, 0.95]: one problem closes with half of it.
    fit_rate: float = 0.3
    # Ratios of gain to cost are softened by this share of the mean [0.99, 1.03] and cut off
    # [0.96, 1.05]: without the cut 38 instead of 41 of 88 problems are proven in 150 nodes.
    floor: float = 1e-3
    max_ratio: float = 100.0


@dataclass(frozen=True)
class ChoiceTuning:
    """Which relaxation suits a problem."""

    # Rounds at the places looked at [1.40, 1.32].
    n_rounds: int = 3
    # Emphases are fitted for up to so many directions [1.00, 1.00], each worth this share of the
    # one before [0.99, 0.97].
    max_directions: int = 3
    direction_share: float = 0.9
    # or where what is lacking, times this for each direction, falls: of 22 problems that 20 s do
    # not close two end with half the gap, one with a third, none with 10 % more.
    direction_toll: float = 1.67
    # The share of the gap that the bound at the incumbent may use up [1.00, 1.00]: boxes around
    # it need the rest.
    closed_share: float = 0.6
    # Share of the time limit that may pass before the choice is made: the tree needs the rest.
    share_of_time: float = 0.25
    # Steps of a fit [1.00, 1.00], and how many in a row may be in vain [1.00, 1.44].
    fit_steps: int = 10
    patience: int = 3
    # Weight of the past in the running mean of the spreads [1.35, -].
    inertia: float = 0.7
    # Numbers of kept costs in the first coarse look [1.00, 1.00].
    n_kept: int = 8


@dataclass(frozen=True)
class CoordinateTuning:
    """Boxes of coordinates."""

    # Rounds per box [1.10, 0.99]; few samples have strong kinks and cheap rounds [1.06, 1.02].
    n_rounds: int = 4
    n_rounds_few: int = 10
    # Boxes are cut before directions are taken in while widths explain this share of what lacks
    # [1.00, 1.18].
    width_share: float = 0.4
    # A box is about to be closed when it lacks at most so many times the gap that is allowed
    # [1.00, 1.00]; 39 instead of 41 of 88 problems are proven in 150 nodes if none is.
    within_reach: float = 10.0
    # Boxes that are certain to lack this share of the objective are split unseen [1.02, 1.01],
    # which saves 7 % of the time with hundreds of samples.
    hopeless: float = 0.5


@dataclass(frozen=True)
class RelayTuning:
    """When a tree makes way for one with another relaxation."""

    # Nodes before the first look at what the relaxation can prove; twice as many until the next.
    first_turn: int = 128
    # A tree is near its limit when it lacks at most so many times what the relaxation does.
    near_limit: float = 1.1
    # Another relaxation must lack at most this share.
    worth: float = 0.85
    # Shares of the time limit after which none is fitted, and none is thought of.
    share_of_time: float = 0.5
    latest: float = 0.6


@dataclass(frozen=True)
class TreeTuning:
    """Which tree, and what happens before it grows; figures at 320 nodes."""

    # Descents at the root [1.04, 0.97]; with two an objective is 3 % larger.
    n_descents: int = 4
    # Effort of the search for a classifier, that of "dca".
    effort: int = 12
    # Relative gap above which they are followed: below, none of 50 with quadratic and
    # trigonometric weights found anything, and at a large C one took up to 48 s of 60.
    worth_trails: float = 0.1
    # Descents from shaken classifiers before a long search with few samples: objectives within
    # 1e-9 [1.00, 1.00].
    n_shakes: int = 60
    # Ways to hand out costs, as a logarithm, up to which they are enumerated implicitly.
    max_log_assignments: float = math.log(1e5)
    # With few samples two trees take turns, with so many nodes [1.14, 0.97], [1.00, 1.00].
    coordinates_first: int = 200
    then_shares: int = 1500
    # Newton steps of convex problems that only bound handed-out costs: half of them are not done
    # by then, and any step gives a bound.
    steps_to_bound: int = 60
    # Relative accuracy of convex problems that decide: below the smallest gap worth asking for.
    exact: float = 1e-9


@dataclass(frozen=True)
class Tuning:
    """All of them."""

    # Up to here samples are few; with none few 1.57.
    few_samples: int = 64
    # Convex problems resume at this share of the last penalty of a similar one [1.02, 1.01].
    restart_share: float = 0.1
    descent: DescentTuning = field(default_factory=DescentTuning)
    exploration: ExplorationTuning = field(default_factory=ExplorationTuning)
    minorants: MinorantTuning = field(default_factory=MinorantTuning)
    relaxation: RelaxationTuning = field(default_factory=RelaxationTuning)
    emphasis: EmphasisTuning = field(default_factory=EmphasisTuning)
    choice: ChoiceTuning = field(default_factory=ChoiceTuning)
    coordinates: CoordinateTuning = field(default_factory=CoordinateTuning)
    relay: RelayTuning = field(default_factory=RelayTuning)
    tree: TreeTuning = field(default_factory=TreeTuning)
