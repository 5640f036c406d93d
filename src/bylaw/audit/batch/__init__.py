"""Audits of millions of conversations: shards, engines that judge them, typed tables. Start at `run`."""
