"""What tools have shown: records by the ids they bear, and what a means of payment may be called."""
