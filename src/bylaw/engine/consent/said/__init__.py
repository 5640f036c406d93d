"""What was said: messages, the values, days and numbers they state, and where something was said before."""
