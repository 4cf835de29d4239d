"""Plugins: installed distributions, their entry points, and errors that name them."""
