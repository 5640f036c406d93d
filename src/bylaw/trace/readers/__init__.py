"""One module for each format. Each yields trajectories, and an error for each record that it cannot read. Start with
`chat`.
"""
