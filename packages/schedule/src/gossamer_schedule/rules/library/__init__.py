"""The library of rules, one file each. `ordered_rules.py` lists them in the order in which they are tried.

The name of a rule for one iteration begins with what the outer loops run over, followed by the operation:
`row_spmm`, `tile_spmm`, `slice_spmv`. `fused_rows` and `separate_iterations` schedule several iterations by
these rules.
"""
