"""Audits millions of conversations in shards. An engine judges the shards, and the results are typed tables. Start at
`run`.
"""
