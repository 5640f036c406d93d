"""Poisoned agents at the clinic: pairs of a safe and an unsafe trajectory, with the broken rules. Start with `samples`.
These modules and their simulator do not use guards.
"""

from bylaw_lab.clinic.attacks.samples import Sample, samples
from bylaw_lab.clinic.attacks.scheme import CATEGORIES, SOURCES, Category, Part, Scheme, Source, schemes

__all__ = ["CATEGORIES", "SOURCES", "Category", "Part", "Sample", "Scheme", "Source", "samples", "schemes"]
