"""The incremental engine that audit and shield share. It first judges a call using only what the agent had seen, then
completes the judgement with the ground truth. Start at `session`.
"""
