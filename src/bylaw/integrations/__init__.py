"""Adapters that connect the shield to agent frameworks: one file per framework, each with its own extra. Start with the
file of your framework, then read `follower`.
"""
