"""What stands in a text: its sentences, and the days, times, numbers, sums and names in them, read in one place.

Start at `number`, `day` and `condition`. Nothing here knows tools, packs or conversations.
"""
