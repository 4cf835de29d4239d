"""The gossamer language: nodes, script text, wire format, verifiers, proofs, reference interpreter."""
