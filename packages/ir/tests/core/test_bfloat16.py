"""float64 numbers are rounded to bfloat16 once, in constants as in casts: the oracle is exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from gossamer_ir.core.bfloat16 import decode_bfloat16, encode_bfloat16, round_bfloat16
from gossamer_ir.core.constants import constant, value_of

ABOVE_TIE = 1 + 2**-8 + 2**-40
"""Just above the middle of 1 and the next bfloat16: as a float32 it is the middle, a tie."""
NEXT = 1 + 2**-7


def nearest(number):
    """The bfloat16 number nearest to a positive number, ties to even, without overflow."""
    bits = np.arange(0x7F80, dtype=np.uint16)
    values = decode_bfloat16(bits)
    above = int(np.searchsorted(values, number))
    low, high = (Fraction(float(values[at])) for at in (above - 1, above))
    exact = Fraction(number)
    if exact - low == high - exact:
        return float(low if (above - 1) % 2 == 0 else high)
    return float(low if exact - low < high - exact else high)


@pytest.mark.parametrize(
    "number",
    [ABOVE_TIE, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 - 2**-40, 0.1, 3e38, 1e-40, 2.0**-133 * 1.5],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_constant_is_the_nearest_bfloat16_as_its_cast_is(number, sign):
    expected = sign * nearest(number)
    assert value_of(constant(sign * number, "bfloat16")) == pytest.approx(expected, rel=1e-7)
    assert np.float32(value_of(constant(sign * number, "bfloat16"))) == expected
    assert round_bfloat16(np.float64(sign * number)) == expected


def test_a_number_just_above_a_tie_is_rounded_up():
    assert value_of(constant(ABOVE_TIE, "bfloat16")) == NEXT
    assert constant(3.4e38, "bfloat16").text == "inf"


def test_stored_elements_read_back():
    bits = np.arange(2**16, dtype=np.uint16)
    numbers = bits[~np.isnan(decode_bfloat16(bits))]
    np.testing.assert_array_equal(encode_bfloat16(decode_bfloat16(numbers)), numbers)
