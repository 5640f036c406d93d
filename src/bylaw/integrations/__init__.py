"""Adapters of the shield: one file per framework, each with its own extra. Start at your framework's file, then at
`follower`.
"""
