"""Web pages to look, decide, sign and approve: an audit with `bylaw view`, live traffic with `bylaw serve`. See
`pages`.
"""
