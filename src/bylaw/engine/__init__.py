"""The incremental engine that audit and shield share. Start at `session`."""
