"""Actions: what a call of a generic tool does (`browser_click`, `execute_sql`, `bash`). Start with `performing.py`."""
