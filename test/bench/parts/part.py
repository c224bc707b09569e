# SPDX-License-Identifier: Apache-2.0
"""Part: one measurement, and its section of the report."""


class Part:
    name = ""
    about = ""  # a description for the progress output
    by_default = True
    has_section = True  # of its own; otherwise another part's section includes it

    def measure(self, how):
        """A value for JSON. Raises Skip if it can't be measured."""
        raise NotImplementedError

    def section(self, results, aims):
        """Markdown, from all parts' results by name. Adds its targets to `aims`. Empty if nothing was measured."""
        raise NotImplementedError
