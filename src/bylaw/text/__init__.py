"""Reads plain text: sentences, dates, times, numbers, amounts and names. Start at `number`, `day` and `condition`. This
package imports nothing from Bylaw except `errors`.
"""
