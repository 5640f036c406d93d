"""Checks that a policy's owner runs before signing: a pack's cases, and what they do not cover. Start at `check`."""
