# SPDX-License-Identifier: Apache-2.0
"""Skip: something can't be measured here, and why."""


class Skip(Exception):
    pass
