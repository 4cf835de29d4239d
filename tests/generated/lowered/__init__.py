"""Random programs of the position, loop and flat stage that may write what they read as indices, bounds and
conditions.
"""

from tests.generated.lowered.programs.draw_lowered import draw_lowered
from tests.generated.lowered.programs.lowered_program import Lowered

__all__ = ["Lowered", "draw_lowered"]
