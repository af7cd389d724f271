"""The `tidemark` command with another driver: `FAKE_DRIVER` is the command that starts it, as a JSON list."""

import json
import os

from tidemark.cli import driver_process

driver_process.DRIVER = tuple(json.loads(os.environ["FAKE_DRIVER"]))

from tidemark.cli.main import main  # noqa: E402

main()
