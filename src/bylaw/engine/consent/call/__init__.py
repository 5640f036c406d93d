"""A call as consent looks at it: what it does, to what, and all that matters in its arguments."""
