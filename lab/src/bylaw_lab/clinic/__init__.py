"""The clinic's simulator, practice tasks, attacks and the recorded demo conversations."""
