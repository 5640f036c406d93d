"""Tests import the lab's scripts by name, as the scripts import each other."""

import sys
from pathlib import Path

LAB = Path(__file__).parents[1]
sys.path += [str(LAB / "benchmarks"), str(LAB / "scripts")]
