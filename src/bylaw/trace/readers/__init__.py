"""One module a format; each yields trajectories and, for what it cannot read, errors. Start at `chat`."""
