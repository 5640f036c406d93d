"""Training material for the next model: thoughts, data sets and rewards. Start with `reward` and `thought`."""
