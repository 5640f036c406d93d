"""The shield in LangChain and LangGraph; skipped as one where it is not installed (`tests/lacking.py`)."""
