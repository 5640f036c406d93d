"""Web pages for audits (`bylaw view`) and live traffic (`bylaw serve`). On these pages, people decide findings, sign
checks and approve calls.
"""
