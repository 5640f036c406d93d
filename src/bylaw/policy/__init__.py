"""Policies, the policy document and the tools. Start at `statement`."""
