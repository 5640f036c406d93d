"""What the user answered: a yes, a no, a condition, and what stands beside a yes. Start at `user_answer`."""
