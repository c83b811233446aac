"""Which numbers can be computed with, and how missing ones are marked."""

from __future__ import annotations

#: Scalings and kernels square the features; squares of larger numbers are not finite any more.
LARGEST_NUMBER = 1e150

#: What an error says about larger ones.
TOO_LARGE = "too large a number to compute with"

#: Words that stand for a missing value in a column of numbers, in small letters.
MISSING_MARKS = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "none"})
