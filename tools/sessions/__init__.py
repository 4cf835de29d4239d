"""What the sessions of noxfile.py consist of: distributions, their wheels, and runs of tests."""
