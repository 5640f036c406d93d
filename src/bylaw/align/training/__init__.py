"""Training in three stages on TRL (extra `train`). Start reading at `run`."""
