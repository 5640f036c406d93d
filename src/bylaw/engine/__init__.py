"""The incremental engine shared by audit and shield. It first judges a call using only what the agent had seen, then
settles that judgement against the truth. Start at `session`.
"""
