// SPDX-License-Identifier: Apache-2.0
// Who used CPU, as the rows of a tree: unit or container, process, thread. Pure.
import type { ProcessUsage, Steps, ThreadUsage } from "../answers";
import type { Selection } from "../state";
import { dateTime, printable } from "../text";

export interface Row {
  key: string;
  level: number; // from 1 on
  position: number; // among those beside it, from 1 on
  beside: number; // how many those are
  kind: "machine" | "group" | "process" | "thread";
  name: string;
  more: string;
  title: () => string; // made when a row is drawn: there are thousands that never are
  cpuSeconds: number;
  steps: readonly number[] | null; // CPU time in each step of the window
  isOpen: boolean | null; // null: there is nothing below it
  isEnded: boolean;
  selects: Partial<Selection>;
}

export interface Usage {
  processes: readonly ProcessUsage[];
  cpuSeconds: number;
  machineSteps: readonly number[] | null;
  steps: ReadonlyMap<string, readonly number[]>; // by process, of the busiest
  threads: ReadonlyMap<string, readonly ThreadUsage[]>; // by process, of those that are open
}

export interface Shown {
  filter: string;
  closed: ReadonlySet<string>; // groups
  open: ReadonlySet<string>; // processes
}

const OTHERS = "others";

export const cpuOf = ({ user_cpu_ms, kernel_cpu_ms }: Steps) => user_cpu_ms.map((ms, step) => ms + kernel_cpu_ms[step]);

interface Group {
  key: string;
  name: string;
  title: string;
  selects: Partial<Selection>;
  processes: ProcessUsage[];
  cpuSeconds: number;
}

function groupOf({ container, unit }: ProcessUsage): Omit<Group, "processes" | "cpuSeconds"> {
  if (container !== null) {
    const id = /^[0-9a-f]{64}$/.test(container) ? container.slice(0, 12) : printable(container, 100);
    return { key: `container ${container}`, name: id, title: `Container ${printable(container, 200)}`, selects: { container: [container] } };
  }
  if (unit !== null) return { key: `unit ${unit}`, name: printable(unit, 200), title: `Unit ${printable(unit, 400)}`, selects: { unit: [unit] } };
  return { key: OTHERS, name: "In no unit", title: "Processes of no unit and no container", selects: {} };
}

function groupsOf(processes: readonly ProcessUsage[]): Group[] {
  const groups = new Map<string, Group>();
  for (const process of processes) {
    const found = groupOf(process);
    let group = groups.get(found.key);
    if (group === undefined) groups.set(found.key, (group = { ...found, processes: [], cpuSeconds: 0 }));
    group.processes.push(process);
    group.cpuSeconds += process.cpu_seconds;
  }
  return [...groups.values()];
}

function stepsOf(group: Group, steps: Usage["steps"]): number[] | null {
  let sum: number[] | null = null;
  for (const { id } of group.processes) {
    const own = steps.get(id);
    if (own === undefined) continue;
    sum = sum === null ? [...own] : sum.map((value, step) => value + (own[step] ?? 0));
  }
  return sum;
}

function describe(process: ProcessUsage): string {
  const { command_line, executable, comm, uid, unit, container, cgroup, started, ended } = process;
  const lines = [printable(command_line ?? executable ?? comm, 600)];
  const add = (name: string, value: string | number | null) => value !== null && lines.push(`${name} ${printable(String(value), 200)}`);
  add("user", uid);
  add("unit", unit);
  add("container", container);
  if (unit === null && container === null) add("cgroup", cgroup);
  if (started !== null) add("started", dateTime(Date.parse(started)));
  if (ended !== null) add("ended", dateTime(Date.parse(ended)));
  return lines.join("\n");
}

const texts = new WeakMap<ProcessUsage, string>();
// All that a process is found by while one types.
function textOf(process: ProcessUsage): string {
  let text = texts.get(process);
  if (text === undefined) {
    const { pid, comm, executable, command_line, unit, container } = process;
    texts.set(process, (text = [comm, pid, executable, command_line, unit, container].join("\n").toLowerCase()));
  }
  return text;
}

export function matching({ processes }: Usage, filter: string): readonly ProcessUsage[] {
  const wanted = filter.trim().toLowerCase();
  return wanted === "" ? processes : processes.filter((process) => textOf(process).includes(wanted));
}

export function rowsOf(usage: Usage, { filter, closed, open }: Shown): Row[] {
  const rows: Row[] = [];
  const found = matching(usage, filter);
  if (filter.trim() === "") {
    rows.push({
      key: "machine", level: 1, position: 1, beside: 1, kind: "machine", name: "Whole machine", more: "", title: () => "All processes",
      cpuSeconds: usage.cpuSeconds, steps: usage.machineSteps, isOpen: null, isEnded: false, selects: {},
    });
  }

  const addThreads = (process: ProcessUsage, level: number) => {
    const threads = usage.threads.get(process.id) ?? [];
    threads.forEach(({ tid, comm, cpu_seconds }, index) => rows.push({
      key: `thread ${process.id} ${tid}`, level, position: index + 1, beside: threads.length, kind: "thread", name: printable(comm, 100), more: `${tid}`,
      title: () => `Thread ${tid} ${printable(comm, 100)}`, cpuSeconds: cpu_seconds, steps: null, isOpen: null, isEnded: false, selects: { pid: [process.id], tid: [String(tid)] },
    }));
  };
  const addProcess = (process: ProcessUsage, level: number, position: number, beside: number) => {
    const isOpen = open.has(process.id);
    rows.push({
      key: `process ${process.id}`, level, position, beside, kind: "process", name: printable(process.comm, 200),
      more: `${process.pid}`, title: () => describe(process), cpuSeconds: process.cpu_seconds,
      steps: usage.steps.get(process.id) ?? null, isOpen, isEnded: process.ended !== null, selects: { pid: [process.id] },
    });
    if (isOpen) addThreads(process, level + 1);
  };

  // What is alone in its group stands for it, and what is in none stands by itself.
  const groups = groupsOf(found);
  const tops = groups.flatMap((group): (Group | ProcessUsage)[] => (group.key === OTHERS || group.processes.length === 1 ? group.processes : [group]));
  const cpu = (top: Group | ProcessUsage) => ("processes" in top ? top.cpuSeconds : top.cpu_seconds);
  tops.sort((a, b) => cpu(b) - cpu(a));
  tops.forEach((top, index) => {
    if (!("processes" in top)) return addProcess(top, 1, index + 1, tops.length);
    const isOpen = !closed.has(top.key);
    rows.push({
      key: top.key, level: 1, position: index + 1, beside: tops.length, kind: "group", name: top.name, more: `${top.processes.length}`, title: () => top.title,
      cpuSeconds: top.cpuSeconds, steps: stepsOf(top, usage.steps), isOpen, isEnded: top.processes.every(({ ended }) => ended !== null), selects: top.selects,
    });
    if (isOpen) top.processes.forEach((process, at) => addProcess(process, 2, at + 1, top.processes.length));
    return undefined;
  });
  return rows;
}
