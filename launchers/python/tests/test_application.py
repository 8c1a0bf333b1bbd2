"""An application with Celery and RQ, whose own suite passes with the server that `dunlin run` lends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def test_the_suite_of_an_application_with_celery_and_rq_passes(tmp_path):
    application = shutil.copytree(Path(__file__).with_name("application"), tmp_path / "application")
    command = [Path(sys.executable).with_name("dunlin"), "run", "--", sys.executable, "-m", "pytest", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=application, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and "5 passed" in done.stdout, done.stdout + done.stderr
