"""Random programs, random legal schedules, and an oracle of NumPy alone."""

from tests.generated.programs import Program, draw_program
from tests.generated.schedules import stages

__all__ = ["Program", "draw_program", "stages"]
