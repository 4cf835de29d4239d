"""What is profitable on a CPU: functions of the machine, the data and the pattern that choose, and say why.

They write no steps: `decisions` and the rules do that.
"""
