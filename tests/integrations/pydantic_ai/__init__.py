"""The shield in Pydantic AI; skipped as one where it is not installed (`tests/lacking.py`)."""
