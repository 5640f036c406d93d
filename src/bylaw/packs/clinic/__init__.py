"""The clinic pack, its handbook, and the recorded demo."""
