"""The folder of helpers, for tests and the processes that they start."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))
