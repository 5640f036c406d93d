"""One module per format. Each yields trajectories, and an error for each unreadable record. Start at `chat`."""
