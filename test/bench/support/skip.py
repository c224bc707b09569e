# SPDX-License-Identifier: Apache-2.0
"""Skip: the reason why something can't be measured here."""


class Skip(Exception):
    pass
