"""The shield in Microsoft's Agent Framework; skipped as one where it is not installed (`tests/lacking.py`)."""
