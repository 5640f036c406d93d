"""The checks that a policy's owner runs before signing: the cases in a pack, and gaps in them. Start at `check`."""
