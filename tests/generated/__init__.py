"""Random programs, random legal schedules, and an oracle of NumPy alone."""

from tests.generated.programs.draw_program import draw_program
from tests.generated.programs.program import Program

__all__ = ["Program", "draw_program"]
