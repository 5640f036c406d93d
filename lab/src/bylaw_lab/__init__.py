"""Simulators, attacks, benchmarks and experiments that measure Bylaw; not part of the published package."""
