"""Web pages to inspect an audit (`bylaw view`) or live traffic (`bylaw serve`), and to decide, sign and approve. Start
at `pages`.
"""
