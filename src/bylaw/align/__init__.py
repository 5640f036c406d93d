"""What the next model should learn: thoughts, data sets and rewards. Start at `reward` and `thought`."""
