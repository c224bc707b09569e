# SPDX-License-Identifier: Apache-2.0
"""All parts, in the order of the report."""

from parts import answers, interrupts, itself, loads, scale, start, unwinding, waits

PARTS = [*loads.PARTS, *interrupts.PARTS, *start.PARTS, *unwinding.PARTS, *waits.PARTS, *scale.PARTS, *answers.PARTS, *itself.PARTS]
