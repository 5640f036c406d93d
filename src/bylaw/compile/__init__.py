"""Compiles a policy document and a tool catalogue into a pack that a person can sign. Start with `pipeline`."""
