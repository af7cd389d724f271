"""The execution plan, how a graph becomes one, and how it is explained to people."""
