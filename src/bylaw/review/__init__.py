"""What a policy's owner looks at before signing: a pack's cases, and what they leave out. Start at `check`."""
