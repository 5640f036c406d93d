"""Adapters that connect the shield to agent frameworks: one file and one extra per framework. Start with your
framework's file, then read `follower`.
"""
