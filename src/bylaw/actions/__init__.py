"""Actions: the effects of calls to generic tools (`browser_click`, `bash`). Start with `performing.py`."""
