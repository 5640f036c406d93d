"""Training in three stages on TRL (extra `train`). Start at `run`."""
