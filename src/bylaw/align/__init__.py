"""Training material for the next model: thoughts, data sets and rewards. Start reading at `reward` and `thought`."""
