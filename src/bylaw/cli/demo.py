"""`bylaw demo`: a near-miss, seen and believed in two minutes."""


def demo_command() -> None:
    """Show a near-miss in the shipped example."""
    raise SystemExit("not yet")
