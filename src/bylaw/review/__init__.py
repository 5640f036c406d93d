"""Checks for a policy's owner before signing: a pack's cases, and what they do not cover. Start at `check`."""
