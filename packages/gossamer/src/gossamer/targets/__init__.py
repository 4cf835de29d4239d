"""Targets as arguments, and the plugins and backends that they name."""
