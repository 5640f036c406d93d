"""Adapters that connect the shield to agent frameworks: one file per framework, each with its own extra. Start with
your framework's file, then read `follower`.
"""
