"""What only the alignment experiment uses lies with it, in `benchmarks/`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
