"""The shield in Google's ADK; skipped as one where it is not installed (`tests/lacking.py`)."""
