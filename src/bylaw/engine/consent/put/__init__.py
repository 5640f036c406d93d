"""What the agent put to the user: a deed to agree to, options, or something beside it. Start at `proposal`."""
