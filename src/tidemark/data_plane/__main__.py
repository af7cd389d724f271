"""The driver process: `python -m tidemark.data_plane RUN_SPEC.json`."""

from tidemark.data_plane.main import main

raise SystemExit(main())
