"""Training material for a model: thoughts, data sets and rewards. Start reading at `reward` and `thought`."""
