"""From a policy document and a catalogue of tools to a pack that a person can sign. Start at `pipeline`."""
