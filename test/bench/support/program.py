# SPDX-License-Identifier: Apache-2.0
"""Runs a benchmark program that prints one JSON object."""

import json
import os
import subprocess

from support.skip import Skip


def run_json(command, how, **environment):
    if not os.path.exists(command[0]):
        raise Skip(f"{command[0]} has not been built")
    surroundings = {**os.environ, "FLAMED_BINARY": how.flamed, "FLAMED_VICTIMS": how.victims,
                    "FLAMED_BENCHES": how.built("test/bench"), **environment}
    run = subprocess.run([str(word) for word in command], env=surroundings, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        raise Skip(f"{os.path.basename(command[0])} ended with status {run.returncode}")
    return json.loads(run.stdout)
