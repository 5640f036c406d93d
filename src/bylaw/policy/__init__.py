"""Policies, their document, and their tools. Start at `statement`."""
