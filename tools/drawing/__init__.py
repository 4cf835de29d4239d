"""Draws pictures of the documentation as SVG."""
