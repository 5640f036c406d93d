"""Audits millions of conversations in shards and writes typed tables. Start at `run`."""
