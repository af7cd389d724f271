"""The real server with another driver and other times: `SCRIPTED_DRIVER` is its command, `TIMING` a JSON object."""

import json
import os
from pathlib import Path

from tidemark.control_plane.jobs.plane import Timing
from tidemark.control_plane.launch.local import LocalLauncher, current_umask
from tidemark.control_plane.server import serve
from tidemark.settings import load_settings

command = json.loads(os.environ.pop("SCRIPTED_DRIVER"))
timing = Timing(**json.loads(os.environ.pop("TIMING")))
largest_log = int(os.environ.pop("LARGEST_LOG", "1000000"))
serve(load_settings(Path.cwd()), Path.cwd(), LocalLauncher(command, current_umask(), largest_log), timing)
