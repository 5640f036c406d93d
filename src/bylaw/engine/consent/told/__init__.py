"""Whether this call is what was put: its ids, words, counts, sums and means of payment. Start at `told`."""
