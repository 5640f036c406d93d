"""The incremental engine shared by audit and shield. It judges a call on what the agent had seen, then settles it
against the truth. Start at `session`.
"""
