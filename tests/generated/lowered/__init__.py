"""Random programs of the position, loop and flat stage, in which whatever is read as an index, a bound or a
condition may have been written before."""

from tests.generated.lowered.drawing import draw_lowered
from tests.generated.lowered.program import Lowered

__all__ = ["Lowered", "draw_lowered"]
