"""Web pages for inspecting an audit (`bylaw view`) or live traffic (`bylaw serve`), and for deciding, signing and
approving. Start at `pages`.
"""
