"""The library of rules, one file each. `ordered_rules.py` lists them in the order in which they are tried.

`docs/extending/rule.md` has the words of which the name of a rule is made.
"""
