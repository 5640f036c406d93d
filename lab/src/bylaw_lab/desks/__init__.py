"""Desks: real systems for scripted agents, with and without the shield. Start with `desk.py`."""
