"""Web pages for audits (`bylaw view`) and live traffic (`bylaw serve`).

On these pages, reviewers decide on findings, sign checks and approve calls.
"""
