# SPDX-License-Identifier: Apache-2.0
"""Part: something that is measured, and the section of the report about it."""


class Part:
    name = ""
    about = ""  # what is being done, for whoever waits
    by_default = True

    def measure(self, how):
        """A value for JSON. Skip where it can't be measured."""
        raise NotImplementedError

    def section(self, results, aims):
        """Markdown, from all parts' results by name, this one's among them. Empty: another part's section tells of it."""
        raise NotImplementedError
