# SPDX-License-Identifier: Apache-2.0
"""No load besides what the machine does anyway."""

import time

from loads.load import Load


class Idle(Load):
    name = "idle"
    title = "nothing"

    def start(self):
        pass

    def interval(self, seconds):
        time.sleep(seconds)
        return []
