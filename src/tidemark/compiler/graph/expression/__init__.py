"""Behind `expressions`: tokens, grammar, types and the function tables. Nothing here is for other packages."""
