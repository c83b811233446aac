"""What compiled loops of other packages are made of: sorting and pooling."""

from owasvm.losses._sorting import (
    INACTIVE,
    RankTable,
    charge_copies,
    pool_and_clip_copies,
    pool_and_clip_equal,
    sort_beside,
)

__all__ = [
    "INACTIVE",
    "RankTable",
    "charge_copies",
    "pool_and_clip_copies",
    "pool_and_clip_equal",
    "sort_beside",
]
