"""Policies, the document they come from, and their tools. Start at `statement`."""
