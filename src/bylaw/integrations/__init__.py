"""Where the shield plugs in: one file per framework, each an extra. Start at your framework's, then at `follower`."""
