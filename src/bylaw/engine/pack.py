"""Where packs were loaded before; use `bylaw.pack`."""

from bylaw.pack import CRITERIA, Criterion, Pack, build_pack, load_pack

__all__ = ["CRITERIA", "Criterion", "Pack", "build_pack", "load_pack"]
