"""Audits millions of conversations in shards. Engines judge the shards, and the results are typed tables. Start at
`run`.
"""
