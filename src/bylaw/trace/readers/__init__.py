"""One module per log format.

Each module yields trajectories, and an error for each unreadable record. Start at `chat`.
"""
