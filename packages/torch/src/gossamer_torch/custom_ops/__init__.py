"""Operators on plain tensors that are registered with torch, each with its fake and its gradients."""
