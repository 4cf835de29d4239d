"""Test matrices with edge cases, and oracles for products with them."""
