"""Reads plain text: sentences, days, times, numbers, amounts and names. Start at `number`, `day` and `condition`.

This area imports no other area but `errors`.
"""
