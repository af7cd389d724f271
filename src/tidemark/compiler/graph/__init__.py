"""The typed graph of a job: nodes that know the columns and types at each of their ports."""
