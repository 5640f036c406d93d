"""Measures on other people's recorded runs how many attacks and good runs a pack stops. Start at `agentdojo`."""
