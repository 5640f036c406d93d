"""The alignment paper's side tests and ablations: questions on the policy, changed policies, planted faults."""
