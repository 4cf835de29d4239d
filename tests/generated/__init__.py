"""Random programs, random legal schedules, and an oracle of NumPy alone."""

from tests.generated.drawing import draw_program
from tests.generated.program import Program

__all__ = ["Program", "draw_program"]
