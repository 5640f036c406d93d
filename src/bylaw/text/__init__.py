"""Reads plain text: sentences, days, times, numbers, amounts and names.

Start at `number`, `day` and `condition`. Nothing here knows about tools, packs or conversations.
"""
