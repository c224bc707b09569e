// SPDX-License-Identifier: Apache-2.0
// Why threads wait: the daemon's reasons (docs/api.md, Measures). Pure.

export const REASONS = ["run_queue", "disk", "lock", "condition", "network", "pipe", "sleep", "page_fault", "poll", "other"] as const;
export type Reason = (typeof REASONS)[number];

export interface ReasonText {
  name: string;
  what: string;
}

export const REASON_TEXTS: Record<Reason, ReasonText> = {
  run_queue: { name: "Run queue", what: "It could run, but no CPU was free" },
  disk: { name: "Disk", what: "A block device, or a file system" },
  lock: { name: "Lock", what: "A lock of the program, or a lock on a file" },
  condition: { name: "Condition", what: "Another thread is to wake it: a condition variable, a semaphore, a parked thread" },
  network: { name: "Network", what: "A socket" },
  pipe: { name: "Pipe", what: "A pipe" },
  sleep: { name: "Sleep", what: "A time that the program chose" },
  page_fault: { name: "Page fault", what: "Memory that is not there yet: of a file, or swapped out" },
  poll: { name: "Idle", what: "Work: poll, epoll_wait, accept and the like" },
  other: { name: "Other", what: "Something else in the kernel" },
};

// How the time of a disk is known, see disk_account in docs/api.md. The other reasons are all known alike.
const DISK_ACCOUNTS = {
  none: "by samples, since the kernel does not count it (kernel.task_delayacct)",
  some: "of some threads by the kernel's account, of others by samples",
  all: "by the kernel's account",
};
export const howKnown = (reason: Reason, account: keyof typeof DISK_ACCOUNTS | undefined): string =>
  reason === "disk" && account !== undefined ? `, ${DISK_ACCOUNTS[account]}` : "";

// The class of what has its colour, and the custom property: see tokens.css.
export const classOf = (reason: Reason) => `wait-${reason.replace("_", "-")}`;
export const colourOf = (reason: Reason) => `--${classOf(reason)}`;

// The name of the frame that says why: the innermost one of a stack that waits.
export const frameOf = (reason: Reason) => `[${reason}]`;
const BY_FRAME = new Map(REASONS.map((reason) => [frameOf(reason), reason]));
export const reasonIn = (name: string): Reason | null => BY_FRAME.get(name) ?? null;

// The filter of stacks that wait for this reason, and back.
export const focusOn = (reason: Reason) => `^\\[${reason}\\]$`;
export const reasonOfFocus = (focus: string): Reason | null => REASONS.find((reason) => focusOn(reason) === focus) ?? null;

// Times by reason in the order of REASONS, without those that do not occur.
export const listed = (waits: Partial<Record<Reason, number>>): [Reason, number][] =>
  REASONS.flatMap((reason): [Reason, number][] => ((waits[reason] ?? 0) > 0 ? [[reason, waits[reason]!]] : []));
