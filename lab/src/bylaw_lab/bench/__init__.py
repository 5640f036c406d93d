"""Measures how many attacks and good runs a pack stops, on runs that other people recorded. Start with `agentdojo`."""
