# SPDX-License-Identifier: Apache-2.0
"""Part: something that is measured, and the section of the report about it."""


class Part:
    name = ""
    about = ""  # what is being done, for whoever waits
    by_default = True
    has_section = True  # of its own; else another part's tells of it

    def measure(self, how):
        """A value for JSON. Skip where it can't be measured."""
        raise NotImplementedError

    def section(self, results, aims):
        """Markdown, from all parts' results by name. What was aimed at goes to `aims`. Empty where nothing was measured."""
        raise NotImplementedError
