"""The one incremental engine: judge a call on what was seen, settle it on what is true. Start at `session`."""
