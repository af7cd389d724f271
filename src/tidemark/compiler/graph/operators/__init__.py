"""The operators of a job, one family a file; `table.py` lists them."""
