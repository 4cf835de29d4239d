"""The parts of the sessions of noxfile.py: distributions, their wheels, and runs of tests."""
