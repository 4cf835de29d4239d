"""The library of rules, one file each. `ordered_rules.py` lists them in the order in which they are tried."""
