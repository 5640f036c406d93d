"""The incremental engine shared by audit and shield. It first judges a call using only what the agent had seen, then
completes the judgement with the ground truth. Start at `session`.
"""
