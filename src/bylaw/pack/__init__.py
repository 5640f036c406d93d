"""Loads a pack from its files: policies, tools, facts, guards and rules. Start at `load_pack` in `pack`."""

from bylaw.pack.pack import CRITERIA, Criterion, Pack, build_pack, load_pack

__all__ = ["CRITERIA", "Criterion", "Pack", "build_pack", "load_pack"]
