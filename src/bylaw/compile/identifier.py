"""Names that models give, made fit for ids, functions and fields; and what stands for a question."""

import hashlib
import keyword
import re


def slug(text: str) -> str:
    """Lower-case words joined by `-`, the first letter a letter; empty where nothing is left."""
    name = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:60].strip("-")
    name = re.sub(r"^[0-9-]+", "", name)
    return f"{name}-policy" if keyword.iskeyword(name) else name


def function_name(policy: str) -> str:
    return policy.replace("-", "_")


def digest_of(*shown: str) -> str:
    """What is the same as long as a question would show the same again."""
    return hashlib.sha256("\0".join(shown).encode()).hexdigest()[:16]
