"""`python -m tidemark` is the `tidemark` command."""

from tidemark.cli.main import main

main()
