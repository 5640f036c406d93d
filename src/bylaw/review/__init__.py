"""Checks that a policy's owner runs before signing: the cases in a pack, and what the cases do not cover. Start at
`check`.
"""
