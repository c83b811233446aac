"""Which numbers can be computed with."""

from __future__ import annotations

#: Scalings and kernels square the features; squares of larger numbers are not finite any more.
LARGEST_NUMBER = 1e150

#: What an error says about them.
TOO_LARGE = "too large a number to compute with; is it a mark for a missing value?"
