# SPDX-License-Identifier: Apache-2.0
"""All parts, in the order of the report."""

from parts import answers, loads, scale, unwinding

PARTS = [*loads.PARTS, *unwinding.PARTS, *scale.PARTS, *answers.PARTS]
