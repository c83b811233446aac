"""Numbers with about twice the digits of numpy's widest floats, as arrays.

A number is an unevaluated sum ``high + low``, with ``|low|`` at most half a unit in the last place
of ``high``. The parts are ``numpy.longdouble``: about 38 digits and a range far beyond that of
doubles where those have 64 bits of mantissa, about 32 digits where they are plain doubles. The
building blocks, sums and products without error, are those of Knuth, Dekker and Veltkamp.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Part = np.longdouble
# Splits a mantissa into halves whose products are exact.
_SPLITTER = Part(2) ** ((np.finfo(Part).nmant + 2) // 2) + Part(1)

_LN2 = Fraction(
    "0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863327"
)
_HALVINGS = 10  # of the argument of exp before its series
_TERMS = 14  # of the series: (ln 2 / 2^11)^15 / 15! is below the last digit


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _quick_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """For ``|a| >= |b|``."""
    total = a + b
    return total, b - (total - a)


def _split(a: Any) -> tuple[Any, Any]:
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, rest


class Wide:
    """An array of wide numbers; doubles are taken as they are, without rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.extended import Wide
    >>> float((Wide(1.0) + Wide(1e-30) - Wide(1.0))) == 1e-30
    True
    """

    __array_ufunc__ = None  # numpy arrays leave the arithmetic to this class

    def __init__(self, high: Any, low: Any = None) -> None:
        self.high = np.asarray(high, dtype=Part)
        self.low = np.zeros_like(self.high) if low is None else np.asarray(low, dtype=Part)

    @classmethod
    def of_fraction(cls, number: Fraction) -> Wide:
        """The nearest wide number, up to its last digits."""
        total = cls(0.0)
        rest = number
        for _ in range(5):
            piece = float(rest)
            total = total + cls(piece)
            rest -= Fraction(piece)
        return total

    def fractions(self) -> list[Fraction]:
        """The numbers as they are, as rationals, in flat order."""
        return [
            Fraction(*high.as_integer_ratio()) + Fraction(*low.as_integer_ratio())
            for high, low in zip(self.high.ravel(), self.low.ravel(), strict=True)
        ]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.high.shape

    def __getitem__(self, key: Any) -> Wide:
        return Wide(self.high[key], self.low[key])

    def reshape(self, *shape: int) -> Wide:
        return Wide(self.high.reshape(*shape), self.low.reshape(*shape))

    @property
    def T(self) -> Wide:
        return Wide(self.high.T, self.low.T)

    def doubles(self) -> np.ndarray:
        """Rounded to doubles."""
        return (self.high + self.low).astype(np.float64)

    def __float__(self) -> float:
        return float(self.high + self.low)

    def __neg__(self) -> Wide:
        return Wide(-self.high, -self.low)

    def __add__(self, other: Any) -> Wide:
        other = as_wide(other)
        high, rest = _two_sum(self.high, other.high)
        low, rest_low = _two_sum(self.low, other.low)
        high, rest = _quick_two_sum(high, rest + low)
        return Wide(*_quick_two_sum(high, rest + rest_low))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Wide:
        return self + (-as_wide(other))

    def __rsub__(self, other: Any) -> Wide:
        return as_wide(other) - self

    def __mul__(self, other: Any) -> Wide:
        other = as_wide(other)
        product, rest = _two_product(self.high, other.high)
        rest = rest + (self.high * other.low + self.low * other.high)
        return Wide(*_quick_two_sum(product, rest))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Wide:
        other = as_wide(other)
        quotient = Wide(self.high / other.high)
        for _ in range(2):
            rest = self - quotient * other
            quotient = quotient + Wide(rest.high / other.high)
        return quotient

    def scaled(self, exponent: Any) -> Wide:
        """Times a power of two, exactly."""
        return Wide(np.ldexp(self.high, exponent), np.ldexp(self.low, exponent))

    def power(self, exponent: int) -> Wide:
        """A whole-number power; the power 0 is 1 everywhere."""
        result = Wide(np.ones_like(self.high))
        base = self
        while exponent > 0:
            if exponent % 2:
                result = result * base
            exponent //= 2
            if exponent:
                base = base * base
        return result

    def sum(self, axis: int = -1) -> Wide:
        """Sum along an axis, by halves."""
        high = np.moveaxis(self.high, axis, 0)
        low = np.moveaxis(self.low, axis, 0)
        terms = Wide(high, low)
        count = high.shape[0]
        if count == 0:
            return Wide(np.zeros(high.shape[1:], dtype=Part))
        while count > 1:
            half = count // 2
            folded = terms[:half] + terms[half : 2 * half]
            if count % 2:
                last = terms[2 * half : count]
                folded = Wide(
                    np.concatenate((folded.high, last.high)),
                    np.concatenate((folded.low, last.low)),
                )
            terms = folded
            count = terms.shape[0]
        return terms[0]

    def at_least_zero(self) -> Wide:
        """The positive part."""
        positive = self.high > 0
        return Wide(np.where(positive, self.high, Part(0)), np.where(positive, self.low, Part(0)))

    def absolute(self) -> Wide:
        sign = np.where(self.high < 0, Part(-1), Part(1))
        return Wide(sign * self.high, sign * self.low)

    def argsort(self) -> np.ndarray:
        """Positions in ascending order."""
        return np.lexsort((self.low, self.high))

    def exp(self) -> Wide:
        """Exponential; below exp(-11000), far under the range of doubles, it is 0."""
        tiny = self.high < -11000
        argument = Wide(np.where(tiny, Part(0), self.high), np.where(tiny, Part(0), self.low))
        ln2 = Wide.of_fraction(_LN2)
        exponent = np.rint(argument.high / ln2.high)
        rest = (argument - Wide(exponent) * ln2).scaled(-_HALVINGS)
        # exp(r) - 1 by Horner's scheme, then doubled in argument: (1 + e)^2 - 1 = e (2 + e).
        series = Wide(np.ones_like(rest.high))
        for k in range(_TERMS, 1, -1):
            series = Wide(1.0) + series * rest / Wide(float(k))
        grown = series * rest
        for _ in range(_HALVINGS):
            grown = grown * (grown + 2.0)
        result = (grown + 1.0).scaled(exponent.astype(np.int32))
        return Wide(np.where(tiny, Part(0), result.high), np.where(tiny, Part(0), result.low))

    def tanh(self) -> Wide:
        """Hyperbolic tangent."""
        sign = np.where(self.high < 0, Part(-1), Part(1))
        decay = (self.absolute() * -2.0).exp()
        value = (1.0 - decay) / (1.0 + decay)
        return Wide(sign * value.high, sign * value.low)


def as_wide(number: Any) -> Wide:
    """Doubles and longer floats as wide numbers."""
    return number if isinstance(number, Wide) else Wide(number)


def dot(matrix: Any, vector: Any) -> Wide:
    """Product of a matrix, shape (m, n), and a vector."""
    return (as_wide(matrix) * as_wide(vector)).sum(axis=1)


def inner(one: Any, other: Any) -> Wide:
    """Product of two vectors."""
    return (as_wide(one) * as_wide(other)).sum(axis=0)


def inner_products(X: np.ndarray) -> Wide:
    """``X X'`` of an array of doubles, column by column."""
    columns = Wide(np.asarray(X, dtype=np.float64).T)
    return (columns.reshape(*columns.shape, 1) * columns.reshape(X.shape[1], 1, -1)).sum(axis=0)


def squared_distances(X: np.ndarray) -> Wide:
    """``|x_i - x_j|^2`` of the rows of an array of doubles, from their differences."""
    columns = Wide(np.asarray(X, dtype=np.float64).T)
    differences = columns.reshape(*columns.shape, 1) - columns.reshape(X.shape[1], 1, -1)
    return (differences * differences).sum(axis=0)
