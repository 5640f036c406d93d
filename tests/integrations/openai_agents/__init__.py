"""The shield in the OpenAI Agents SDK; skipped as one where it is not installed (`tests/lacking.py`)."""
