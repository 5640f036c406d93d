"""Desks: real systems that scripted agents work in, with the shield and without. Start at `desk.py`."""
