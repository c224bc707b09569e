/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layout of a runtime's linked frames, as the daemon gives it to the kernel program, and what the program finds by
 * it. runtimes/linked_frames.h explains the layout.
 */
#ifndef FLAMED_BPF_LINKED_LAYOUT_H
#define FLAMED_BPF_LINKED_LAYOUT_H

#include <linux/types.h>

#define FLAMED_MAX_LINKED_FRAMES 512
#define FLAMED_MAX_LINKED_CALLS 128 /* from native code */
#define FLAMED_LINKED_RUN 256       /* frames and calls in one run of the program */
#define FLAMED_LINKED_FRAME_BYTES 128
#define FLAMED_MAX_LINKED_LAYOUTS 256 /* with number 0, which is none */

/* Bit for bit runtimes::ThreadStatePlace::Kind, after 0. */
enum flamed_state_place_kind {
  FLAMED_PLACE_NONE = 0,
  FLAMED_PLACE_THREAD_LOCAL = 1,
  FLAMED_PLACE_THREAD_BLOCK = 2,
  FLAMED_PLACE_THREAD_KEY = 3,
  FLAMED_PLACE_GLOBAL = 4,
};

struct flamed_state_place {
  __u64 kind; /* enum flamed_state_place_kind */
  __s64 offset;
  __u64 address; /* in the module: the process has it at this plus the module's base */
};

/*
 * What tells of a code object, as it was when a sample met it: the first bytes of the object, its name, its file and
 * its lines. For programs that may end, or drop the object, before the daemon can read their memory. Secret: only the
 * ELF worker looks at it.
 */
#define FLAMED_CODE_PARTS 4
#define FLAMED_CODE_PART_BYTES 256
/* In one sample. Others are met by later samples. */
#define FLAMED_MOST_CODE_COPIES 16
/* Of processes that are younger, or replace their code. Names of others are read in time. */
#define FLAMED_YOUNG_PROCESS_NS 1000000000ULL
struct flamed_code_copy {
  __u32 tgid;
  __u32 reserved;
  __u64 start_boottime_ns; /* of the process, as in flamed_sample */
  __u64 code;              /* address */
  __u64 check;
  struct {
    __u64 address;
    __u64 bytes; /* 0: it could not be read */
  } places[FLAMED_CODE_PARTS];
  __u8 parts[FLAMED_CODE_PARTS][FLAMED_CODE_PART_BYTES];
};

enum flamed_linked_instruction {
  FLAMED_INSTRUCTION_ADDRESS = 0,
  FLAMED_INSTRUCTION_BYTE_OFFSET = 1,
  FLAMED_INSTRUCTION_INDEX = 2,
};

enum flamed_linked_boundary {
  FLAMED_BOUNDARY_EACH_FRAME = 0,
  FLAMED_BOUNDARY_MARKED = 1,
  FLAMED_BOUNDARY_OWN_FRAME = 2,
};

/* What tells a code object from another one that has had its address: see runtimes::CodeCheck. */
struct flamed_code_check {
  __u16 at;
  __u16 words;
  __u16 name;
  __u16 file;
  __u16 text;
  __u16 text_bytes; /* of a word of a text: 8, or 0: the words above suffice */
};
#define FLAMED_MOST_CHECK_WORDS 12
/* In a text, as CPython has them: its length, a hash of it. */
#define FLAMED_TEXT_LENGTH 16
#define FLAMED_TEXT_HASH 24
#define FLAMED_MOST_CHECKED_TEXT 192 /* of a longer one these are the end; flamed_code_copy has as much */

struct flamed_linked_layout {
  struct flamed_state_place places[2]; /* tried in this order */
  __u16 thread_id;                     /* in a thread state: the thread pointer of its thread */
  __u16 innermost;       /* in a thread state: the address of the innermost frame, or of what has it ... */
  __u16 innermost_there; /* ... here, if `is_indirect` */
  __u8 is_indirect;
  __u8 frame_bytes; /* read of each frame; a multiple of 8, less than FLAMED_LINKED_FRAME_BYTES */
  __u8 code;        /* in a frame, as are the next three; multiples of 8, or of 4 for an `instruction` of 32 bits */
  __u8 previous;
  __u8 instruction;
  __u8 boundary; /* one byte */
  __u8 boundary_value;
  __u8 boundary_kind;    /* enum flamed_linked_boundary */
  __u8 instruction_kind; /* enum flamed_linked_instruction */
  __u8 padding;
  __u16 first_instruction; /* in a code object */
  __u16 first_call;        /* with FLAMED_BOUNDARY_MARKED, in a thread state: the innermost call */
  __u16 next_call;         /* in a call */
  /* In a code object: the addresses of its name, file and lines, see flamed_code_copy; 0: they are not copied. */
  __u16 parts[FLAMED_CODE_PARTS - 1];
  __u16 interpreter; /* in a thread state: the address of its interpreter */
  struct flamed_code_check check;
  /* In an interpreter: a count that changes before another code object has the address of one; 0: there is none. */
  __u32 generation;
  __u16 reserved;
};

/*
 * Where frames of a runtime keep what they run, see runtimes/frame_slots.h. Places are words of 8 bytes below the frame
 * pointer.
 */
struct flamed_slot_layout {
  __u8 mark;
  __u8 mark_bits; /* some of them are set in the lowest byte of `mark` of such a frame; 0: frames have no mark */
  __u8 function;
  __u8 instruction; /* see instruction_kind */
  /*
   * In the innermost frame the instruction is in a register, if another one has the word at `guard`, or the address
   * that is so many words above the frame pointer. DWARF numbers.
   */
  __u8 guard;
  __u8 guard_register;
  __u8 instruction_register;
  __u8 lowest;             /* of these places */
  __u16 code;              /* in a function: the address of its code object */
  __u16 first_instruction; /* the number of the first one, or where it is in the code object */
  struct flamed_code_check check;
  __u8 instruction_kind; /* enum flamed_slot_instruction */
  /*
   * While the innermost frame is being set up, the function is in a register: as long as the stack pointer is above the
   * lowest place, and before that where the walk steps by the address in entry_cfa_register. DWARF numbers; all ones:
   * there is none.
   */
  __u8 entry_function_register;
  __u8 entry_cfa_register;
  __u8 reserved[5];
};
enum flamed_slot_instruction {
  FLAMED_SLOT_NUMBER = 0,  /* in the upper 32 bits, if the lower ones are 0; in the register it is alone */
  FLAMED_SLOT_ADDRESS = 1, /* in bytes */
};
/* In flamed_process.runtime and flamed_sample.linked_layout: the lower bits are the number of a flamed_slot_layout. */
#define FLAMED_SLOTS 0x100
#define FLAMED_INTERPRETED 0x200 /* with it: the frames are those of a JVM's interpreter */
#define FLAMED_SLOT_RUN 256      /* native frames in one run of the program */
#define FLAMED_SLOT_WORDS 16     /* below the frame pointer: `lowest` is less; a power of two */

/* What the walk found. */
struct flamed_linked_frame {
  __u64 code; /* the code object's address >> 3 << 20 | the instruction plus 1, in units of the runtime */
  /*
   * The number of the call, or with FLAMED_SLOTS of the native frame << 48 | check word; the word is 0 if the code
   * object could not be read
   */
  __u64 check;
};
#define FLAMED_INSTRUCTION_BITS 20
#define FLAMED_MOST_INSTRUCTION ((1ULL << FLAMED_INSTRUCTION_BITS) - 1) /* this one and all later ones */
#define FLAMED_CHECK_BITS 48

/* A call: its address on the native stack, and above it the number of the native frame that has it there. */
#define FLAMED_CALL_BITS 48
#define FLAMED_CALL_ADDRESS ((1ULL << FLAMED_CALL_BITS) - 1)
#define FLAMED_NO_NATIVE_FRAME 0xffffULL

/*
 * Frames of a thread mostly lie one behind the other, callers at lower addresses: one copy has about ten of them.
 * Frames that lie elsewhere, as those of generators do, are copied alone.
 */
#define FLAMED_LINKED_WINDOW_BYTES 1024
#define FLAMED_LINKED_ALONE (FLAMED_LINKED_WINDOW_BYTES / 8) /* where those are put */
#define FLAMED_LINKED_CHECK 192                              /* where what tells of a code object is put */
#define FLAMED_LINKED_CHECK_WORDS 16                         /* there is as much room; a power of two */
#define FLAMED_LINKED_WORDS 256
#define FLAMED_LINKED_NEAR 2048 /* a caller is looked for behind its callee if it is not farther below */

/* The state of a walk between runs of the program, and what it found. */
struct linked_walk {
  __u64 at;    /* the next frame; 0: the walk is over */
  __u64 entry; /* with FLAMED_BOUNDARY_MARKED: the call of the next frames */
  __u32 frame_count;
  __u32 call_count;
  __u32 is_cut; /* frames outside of the last one are missing: memory that can't be read, or too many */
  __u32 joined; /* calls whose native frame is known */
  __u32 tgid;
  __u32 now_seconds;
  __u32 is_news;       /* there is a code object that the daemon should look at */
  __u32 may_copy;      /* 1: code objects may be copied */
  __u32 copy_count;    /* to be copied: `copies` */
  __u32 runs;          /* of the program, for this walk */
  __u32 trust_seconds; /* see linked_trust(), as for the next one */
  __u32 young_seconds;
  __u64 generation;   /* another one if code objects may have been replaced; 0: not known */
  __u64 last;         /* the frame before */
  __u64 window_start; /* address of words[0]; 0: there is nothing in it */
  __u64 words[FLAMED_LINKED_WORDS];
  struct {
    __u64 code, check;
  } copies[FLAMED_MOST_CODE_COPIES];
  struct flamed_linked_frame frames[FLAMED_MAX_LINKED_FRAMES]; /* innermost first */
  __u64 calls[FLAMED_MAX_LINKED_CALLS];                        /* innermost first, in ascending order; see
                                                                  FLAMED_CALL_ADDRESS */
};

/* A program's file, for processes whose tables the daemon has not made yet. */
struct flamed_program_file {
  __u64 inode;
  __u64 device; /* the kernel's dev_t: major << 20 | minor */
};
#define FLAMED_DEVICE_MINOR_BITS 20
#define FLAMED_MAX_PROGRAM_FILES 1024

/* What the daemon knows of it. */
#define FLAMED_NO_RUNTIME 0
struct flamed_known_program {
  __u64 layout;     /* number of the runtime in it; FLAMED_NO_RUNTIME: its stacks are walked late, if it ends soon */
  __u64 first_code; /* the smallest address of code in the file */
};
/* The daemon is notified of a process of such a program when it has run for this long. */
#define FLAMED_BRIEF_PROCESS_NS 200000000ULL

#endif /* FLAMED_BPF_LINKED_LAYOUT_H */
