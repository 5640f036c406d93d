"""Checks that a policy's owner runs before signing: the cases in a pack, and the gaps in them. Start at `check`."""
