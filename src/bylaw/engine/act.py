"""Where acts were before; use `bylaw.rule.act`."""

from bylaw.rule.act import Act, Turn

__all__ = ["Act", "Turn"]
