"""Checks for a policy's owner to run before signing: the cases in a pack, and what they do not cover. Start
at `check`.
"""
