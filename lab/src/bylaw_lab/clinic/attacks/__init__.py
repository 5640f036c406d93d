"""Poisoned agents at the clinic's desk: pairs of trajectories, one safe and one not, with the rules that are broken.

Like the simulator that they stand on, these modules know nothing of guards. Start at `samples`.
"""

from bylaw_lab.clinic.attacks.samples import Sample, samples
from bylaw_lab.clinic.attacks.scheme import CATEGORIES, SOURCES, Category, Part, Scheme, Source, schemes

__all__ = ["CATEGORIES", "SOURCES", "Category", "Part", "Sample", "Scheme", "Source", "samples", "schemes"]
