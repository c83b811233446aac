"""What ``owasvm fit`` notes in a model file about its data, for the commands that apply it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Notes:
    """What predictions must know about the training data.

    Parameters
    ----------
    target : str or None
        The column of labels.
    id : str or None
        The column that tells rows apart, no feature.
    rank_groups : str or None
        The column of groups that were ranked apart, no feature.
    categories : dict
        Columns of text with the categories that were seen.
    fills : bool
        Whether missing numbers are filled in.
    is_sparse : bool
        Whether the model was trained on sparse data.
    starts_with_zero : bool
        Whether the first feature of an svmlight file has index 0.
    """

    target: str | None = None
    id: str | None = None
    rank_groups: str | None = None
    categories: dict[str, list[str]] = field(default_factory=dict)
    fills: bool = False
    is_sparse: bool = False
    starts_with_zero: bool = False

    def as_metadata(self) -> dict[str, Any]:
        """The notes as JSON holds them."""
        return asdict(self)

    @classmethod
    def of(cls, metadata: object) -> Notes:
        """The notes in a file, which may hold anything, or nothing."""
        given = metadata if isinstance(metadata, Mapping) else {}
        categories = given.get("categories")
        return cls(
            target=_text_or_none(given.get("target")),
            id=_text_or_none(given.get("id")),
            rank_groups=_text_or_none(given.get("rank_groups")),
            categories={
                str(name): [str(value) for value in values]
                for name, values in (categories.items() if isinstance(categories, dict) else ())
                if isinstance(values, list)
            },
            fills=given.get("fills") is True,
            is_sparse=given.get("is_sparse") is True,
            starts_with_zero=given.get("starts_with_zero") is True,
        )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
