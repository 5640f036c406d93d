"""Desks: real systems that scripted agents work in, with the shield and without. Start with `desk.py`."""
