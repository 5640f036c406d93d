"""Measured on recorded runs of others: what a pack stops, and what it disturbs. Start at `agentdojo`."""
