"""From the text of a job to its execution plan: `compile_job` in `compile.py` is the one verb.

Pure: no pyspark, no files, no network. Stages: definition, diagnostics, graph, plan.
"""
