"""Whether a question would show the same again."""

import hashlib


def digest_of(*shown: str) -> str:
    """A digest of what a question shows."""
    return hashlib.sha256("\0".join(shown).encode()).hexdigest()[:16]
