"""Programs for developers; what users install does not contain them."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the repository."""
