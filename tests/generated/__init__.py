"""Random programs, random legal schedules, and an oracle of NumPy alone."""

from tests.generated.drawing import draw_program
from tests.generated.program import Program
from tests.generated.schedules import stages

__all__ = ["Program", "draw_program", "stages"]
