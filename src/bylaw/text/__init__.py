"""Reads plain text: sentences, days, times, numbers, amounts and names. Start with `number`, `day` and `condition`.
This area imports no area other than `errors`.
"""
