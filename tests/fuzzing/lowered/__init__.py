"""Random programs of the position, loop and flat stage that may write what they read as indices, bounds and
conditions.
"""

from tests.fuzzing.lowered.programs.draw_lowered import draw_lowered
from tests.fuzzing.lowered.programs.lowered_program import Lowered

__all__ = ["Lowered", "draw_lowered"]
