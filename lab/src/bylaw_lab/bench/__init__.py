"""Measures how many attacks and good runs a pack stops, on recorded runs by other people. Start with `agentdojo`."""
