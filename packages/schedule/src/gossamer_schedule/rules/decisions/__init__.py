"""Decisions that several rules take, one file each: the steps that follow from a profitable choice."""
