"""One module per format. Each yields trajectories, and an error per unreadable record. Start with `chat`."""
