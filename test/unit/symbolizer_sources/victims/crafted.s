# SPDX-License-Identifier: Apache-2.0
#
# Debug information that no compiler writes: references in a circle, functions nested without end.
    .text
    .globl main, place_looping, place_deep, place_backward
main:
place_looping:
    nop
    nop
place_deep:
    nop
    nop
place_backward:
    nop
    nop
end_of_code:

    .section .debug_abbrev
abbreviations:
    .uleb128 1              # compile unit, children: low_pc addr, high_pc data4
    .uleb128 0x11
    .byte 1, 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 2              # subprogram: low_pc addr, high_pc data4, abstract_origin ref4
    .uleb128 0x2e
    .byte 0, 0x11, 0x01, 0x12, 0x06, 0x31, 0x13, 0, 0
    .uleb128 3              # subprogram: abstract_origin ref4, specification ref4
    .uleb128 0x2e
    .byte 0, 0x31, 0x13, 0x47, 0x13, 0, 0
    .uleb128 4              # subprogram, children: name string, low_pc addr, high_pc data4
    .uleb128 0x2e
    .byte 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 5              # inlined subroutine, children: name string, low_pc addr, high_pc data4
    .uleb128 0x1d
    .byte 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
    .uleb128 6              # enumeration, children: sibling ref4
    .uleb128 0x04
    .byte 1, 0x01, 0x13, 0, 0
    .byte 0

    .section .debug_info
unit:
    .long unit_end - unit_start
unit_start:
    .value 4
    .long 0                 # the only table of .debug_abbrev
    .byte 8
    .uleb128 1
    .quad main
    .long end_of_code - main

looping:
    .uleb128 2
    .quad place_looping
    .long 2
    .long circle - unit
circle:
    .uleb128 3
    .long looping - unit
    .long circle - unit

backward:                   # the entry behind it is said to be the one before it
    .uleb128 6
    .long looping - unit
    .byte 0
    .uleb128 4
    .asciz "behind"
    .quad place_backward
    .long 2
    .byte 0

    .uleb128 4
    .asciz "deep"
    .quad place_deep
    .long 2
    .rept 10000
    .uleb128 5
    .asciz "x"
    .quad place_deep
    .long 2
    .endr
    .rept 10002
    .byte 0
    .endr
unit_end:
