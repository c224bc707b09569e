// SPDX-License-Identifier: Apache-2.0
// CPU use as the rows of a tree: groups, processes, threads. Pure.
import type { Process, ProcessUsage, Steps, ThreadUsage } from "../answers";
import type { Grouping, Selection } from "../state";
import { dateTime, printable } from "../text";

export interface Row {
  key: string;
  level: number; // from 1 on
  position: number; // among its siblings, from 1 on
  beside: number; // number of siblings, including this row
  kind: "machine" | "group" | "process" | "thread";
  name: string;
  more: string;
  title: () => string; // a function, since only drawn rows need it and there are thousands
  cpuSeconds: number;
  steps: readonly number[] | null; // CPU time in each step of the window; null: not known
  isOpen: boolean | null; // null: it has no children
  isEnded: boolean;
  selects: Partial<Selection>;
}

export interface Usage {
  processes: readonly ProcessUsage[];
  cpuSeconds: number;
  machineSteps: readonly number[] | null;
  steps: ReadonlyMap<string, readonly number[]>; // by process, for the busiest
  courses: ReadonlyMap<string, readonly number[]>; // by row, for those requested one by one
  threads: ReadonlyMap<string, readonly ThreadUsage[]>; // by process, for open ones
}

export interface Shown {
  filter: string;
  by: Grouping;
  open: ReadonlySet<string>; // keys of rows
}

export const cpuOf = ({ user_cpu_ms, kernel_cpu_ms }: Steps) => user_cpu_ms.map((ms, step) => ms + kernel_cpu_ms[step]);

// During a search, groups with at most so many matches are open.
const MOST_OPENED = 8;

// ---- Groups ----

interface Group {
  key: string;
  name: string;
  title: () => string;
  selects: Partial<Selection>;
  processes: ProcessUsage[];
  cpuSeconds: number;
}
type Kind = Omit<Group, "processes" | "cpuSeconds">;

const fileName = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const containerName = (container: string) => (/^[0-9a-f]{64}$/.test(container) ? container.slice(0, 12) : printable(container, 100));

function programOf({ executable, comm }: Process): Kind {
  if (executable === null) return { key: `comm ${comm}`, name: printable(comm, 200), title: () => `Processes named ${printable(comm, 200)}`, selects: { comm: [comm] } };
  const program = fileName(executable);
  return { key: `exe ${program}`, name: printable(program, 200), title: () => `Program ${printable(executable, 400)}`, selects: { exe: [program] } };
}
function unitOf({ unit }: Process): Kind {
  if (unit === null) return { key: "no unit", name: "In no unit", title: () => "Processes of no unit", selects: {} };
  return { key: `unit ${unit}`, name: printable(unit, 200), title: () => `Unit ${printable(unit, 400)}`, selects: { unit: [unit] } };
}
function containerOf({ container }: Process): Kind {
  if (container === null) return { key: "no container", name: "In no container", title: () => "Processes of no container", selects: {} };
  return { key: `container ${container}`, name: containerName(container), title: () => `Container ${printable(container, 200)}`, selects: { container: [container] } };
}
function userOf({ uid }: Process): Kind {
  if (uid === null) return { key: "no user", name: "User not known", title: () => "Processes whose user is not known", selects: {} };
  return { key: `uid ${uid}`, name: uid === 0 ? "root" : `User ${uid}`, title: () => `Processes of user ${uid}`, selects: { uid: [String(uid)] } };
}

function grouped(processes: readonly ProcessUsage[], kindOf: (process: Process) => Kind): Group[] {
  const groups = new Map<string, Group>();
  for (const process of processes) {
    const kind = kindOf(process);
    let group = groups.get(kind.key);
    if (group === undefined) groups.set(kind.key, (group = { ...kind, processes: [], cpuSeconds: 0 }));
    group.processes.push(process);
    group.cpuSeconds += process.cpu_seconds;
  }
  return [...groups.values()].sort((a, b) => b.cpuSeconds - a.cpuSeconds);
}

const KINDS = { unit: unitOf, container: containerOf, user: userOf };

// ---- Descriptions and the search ----

function describe(process: Process): string {
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

// The process's container or unit. A row shows it unless the list is grouped by it.
const belongs = ({ container, unit }: Process) => (container !== null ? containerName(container) : unit !== null ? printable(unit, 60) : "");

// Container runtimes can be told by the names of their control groups.
const RUNTIMES: readonly [RegExp, string][] = [
  [/docker/, "docker"], [/libpod/, "podman libpod"], [/kubepods/, "kubernetes kubepods pod"], [/crio/, "cri-o crio"], [/cri-containerd/, "containerd"],
  [/lxc/, "lxc lxd incus"], [/machine\.slice|systemd-nspawn/, "systemd-nspawn machine"],
];

const texts = new WeakMap<ProcessUsage, string>();
// The text that the search of processes matches.
function textOf(process: ProcessUsage): string {
  let text = texts.get(process);
  if (text === undefined) {
    const { pid, comm, executable, command_line, unit, container, cgroup } = process;
    const runtimes = cgroup === null ? [] : RUNTIMES.filter(([pattern]) => pattern.test(cgroup)).map(([, words]) => words);
    // A pod's id has dashes, and the name of its control group has underscores in their place.
    const pod = cgroup?.replaceAll("_", "-") ?? null;
    texts.set(process, (text = [comm, pid, executable, command_line, unit, container, cgroup, pod, ...runtimes].join("\n").toLowerCase()));
  }
  return text;
}

export function matching({ processes }: Usage, filter: string): readonly ProcessUsage[] {
  const wanted = filter.trim().toLowerCase();
  return wanted === "" ? processes : processes.filter((process) => textOf(process).includes(wanted));
}

// ---- Rows ----

// A process with the processes below it.
interface Family {
  process: ProcessUsage;
  children: Family[];
  cpuSeconds: number;
  size: number;
}

function familiesOf(processes: readonly ProcessUsage[]): Family[] {
  const families = new Map(processes.map((process): [string, Family] => [process.id, { process, children: [], cpuSeconds: 0, size: 1 }]));
  const roots: Family[] = [];
  for (const family of families.values()) {
    const parent = family.process.parent === null ? undefined : families.get(family.process.parent);
    if (parent !== undefined && parent !== family) parent.children.push(family);
    else roots.push(family);
  }
  const total = (family: Family): Family => {
    family.children.forEach(total);
    family.children.sort((a, b) => b.cpuSeconds - a.cpuSeconds);
    family.size = family.children.reduce((sum, { size }) => sum + size, 1);
    family.cpuSeconds = family.children.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, family.process.cpu_seconds);
    return family;
  };
  return roots.map(total).sort((a, b) => b.cpuSeconds - a.cpuSeconds);
}

// The keys of the rows that must be open so that a process is seen.
export function keysAround({ processes }: Usage, process: Process, by: Grouping): string[] {
  if (by === "pid") return [];
  if (by === "tree") {
    const keys: string[] = [];
    const parents = new Map(processes.map(({ id, parent }) => [id, parent]));
    for (let id = process.parent; id !== null && parents.has(id) && !keys.includes(`tree ${id}`); id = parents.get(id)!) keys.push(`tree ${id}`);
    return keys;
  }
  const program = programOf(process).key;
  if (by === "") return [program];
  const { key } = KINDS[by](process);
  return [key, `${key} ${program}`];
}

export function rowsOf(usage: Usage, { filter, by, open }: Shown): Row[] {
  const rows: Row[] = [];
  const found = matching(usage, filter);
  const isFiltered = filter.trim() !== "";
  if (!isFiltered) {
    rows.push({
      key: "machine", level: 1, position: 1, beside: 1, kind: "machine", name: "Whole machine", more: "", title: () => "All processes",
      cpuSeconds: usage.cpuSeconds, steps: usage.machineSteps, isOpen: null, isEnded: false, selects: {},
    });
  }
  const stepsOf = (key: string, processes: readonly ProcessUsage[]): readonly number[] | null => {
    const known = processes.map(({ id }) => usage.steps.get(id));
    if (known.some((steps) => steps === undefined)) return usage.courses.get(key) ?? null;
    return known.slice(1).reduce((sum: readonly number[], steps) => sum.map((value, step) => value + (steps![step] ?? 0)), known[0]!);
  };
  // During a search small groups are open by default, and a key in `open` means that the user closed it.
  const isOpen = (key: string, size: number) => (isFiltered && size <= MOST_OPENED) !== open.has(key);

  const addThreads = (process: ProcessUsage, level: number) => {
    const threads = usage.threads.get(process.id) ?? [];
    threads.forEach(({ tid, comm, cpu_seconds }, index) => rows.push({
      key: `thread ${process.id} ${tid}`, level, position: index + 1, beside: threads.length, kind: "thread", name: printable(comm, 100), more: tid === process.pid ? `${tid} · main` : `${tid}`,
      title: () => `${tid === process.pid ? "Main thread" : "Thread"} ${tid} ${printable(comm, 100)}`, cpuSeconds: cpu_seconds, steps: usage.courses.get(`thread ${process.id} ${tid}`) ?? null, isOpen: null, isEnded: false,
      selects: { pid: [process.id], tid: [String(tid)] },
    }));
  };
  const addProcess = (process: ProcessUsage, level: number, position: number, beside: number) => {
    const key = `process ${process.id}`;
    const place = by === "unit" || by === "container" ? "" : belongs(process);
    rows.push({
      key, level, position, beside, kind: "process", name: printable(process.comm, 200), more: place === "" ? `${process.pid}` : `${process.pid} · ${place}`,
      title: () => describe(process), cpuSeconds: process.cpu_seconds, steps: stepsOf(key, [process]), isOpen: open.has(key), isEnded: process.ended !== null,
      selects: { pid: [process.id] },
    });
    if (open.has(key)) addThreads(process, level + 1);
  };
  const addGroup = (group: Group, more: string, level: number, position: number, beside: number, addBelow: () => void) => {
    const { key, name, title, processes, cpuSeconds, selects } = group;
    const opened = isOpen(key, processes.length);
    rows.push({
      key, level, position, beside, kind: "group", name, more, title, cpuSeconds, steps: stepsOf(key, processes), isOpen: opened,
      isEnded: processes.every(({ ended }) => ended !== null), selects,
    });
    if (opened) addBelow();
  };
  // One row for each program. A program's only process has no group around it.
  const addPrograms = (processes: readonly ProcessUsage[], level: number, within: Group | null) => {
    const programs = grouped(processes, programOf);
    programs.forEach((program, index) => {
      if (program.processes.length === 1) return addProcess(program.processes[0], level, index + 1, programs.length);
      const group = within === null ? program : { ...program, key: `${within.key} ${program.key}`, selects: { ...within.selects, ...program.selects } };
      return addGroup(group, `×${group.processes.length}`, level, index + 1, programs.length, () =>
        group.processes.forEach((process, at) => addProcess(process, level + 1, at + 1, group.processes.length)));
    });
  };
  const addFamilies = (families: readonly Family[], level: number) => families.forEach((family, index) => {
    const { process, children } = family;
    if (children.length === 0) return addProcess(process, level, index + 1, families.length);
    const members: ProcessUsage[] = [];
    const collect = (of: Family) => {
      members.push(of.process);
      of.children.forEach(collect);
    };
    collect(family);
    const group: Group = {
      key: `tree ${process.id}`, name: printable(process.comm, 200), title: () => describe(process), selects: { tree: [process.id] }, processes: members, cpuSeconds: family.cpuSeconds,
    };
    return addGroup(group, `${process.pid} and ${family.size - 1} below`, level, index + 1, families.length, () => addFamilies(children, level + 1));
  });

  if (by === "pid") {
    [...found].sort((a, b) => b.cpu_seconds - a.cpu_seconds).forEach((process, index) => addProcess(process, 1, index + 1, found.length));
  } else if (by === "tree") {
    addFamilies(familiesOf(found), 1);
  } else if (by === "") {
    addPrograms(found, 1, null);
  } else {
    const groups = grouped(found, KINDS[by]);
    groups.forEach((group, index) => {
      const { processes } = group;
      const more = processes.length === 1 ? `${printable(processes[0].comm, 60)} ${processes[0].pid}` : `${processes.length}`;
      addGroup(group, more, 1, index + 1, groups.length, () => addPrograms(processes, 2, group));
    });
  }
  return rows;
}
