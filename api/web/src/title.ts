// SPDX-License-Identifier: Apache-2.0
// The selection in words.
import { computed } from "@preact/signals";

import { findProcess } from "./questions";
import { SELECTORS, isMachine, question } from "./state";
import { printable } from "./text";

const LABELS: Record<string, string> = {
  pid: "process", tid: "thread", comm: "threads", exe: "program", unit: "unit", container: "container", cgroup: "cgroup", uid: "user", tree: "tree of",
};

// A readable name, and what distinguishes it from others with the same name.
export const heading = computed<{ name: string; more: string }>(() => {
  if (isMachine.value) return { name: "Whole machine", more: "" };
  const asked = question.value;
  const used = SELECTORS.filter((selector) => asked[selector].length > 0);
  if (used.length === 1 && used[0] === "pid" && asked.pid.length === 1) {
    const process = findProcess(asked.pid[0]);
    return { name: process ? printable(process.comm, 200) : "Process", more: `pid ${asked.pid[0].split("@")[0]}` };
  }
  return { name: used.map((selector) => `${LABELS[selector]} ${asked[selector].map((value) => printable(value, 100)).join(", ")}`).join(" · "), more: "" };
});
