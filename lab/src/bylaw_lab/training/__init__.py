"""Hand-written training kernels: packed attention, shared prefixes, a fast generator, and GRPO over them."""
