"""Decompositions in the published form: `FormatRewriteRule` and `format_decompose`."""
