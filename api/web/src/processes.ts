// SPDX-License-Identifier: Apache-2.0
// The list of who used CPU.

import type { Processes, ProcessUsage } from "./answers";
import { element, percent, printable, seconds } from "./text";

const SHOWN = 200;

interface Parts {
  list: HTMLElement;
  counter: HTMLElement;
  filter: HTMLInputElement;
  // With "pid@start", or "" for the whole machine.
  onSelect: (id: string) => void;
}

export class ProcessList {
  private answer: Processes | null = null;
  private selected = "";
  private readonly list: HTMLElement;
  private readonly counter: HTMLElement;
  private readonly filter: HTMLInputElement;
  private readonly onSelect: (id: string) => void;

  constructor({ list, counter, filter, onSelect }: Parts) {
    this.list = list;
    this.counter = counter;
    this.filter = filter;
    this.onSelect = onSelect;
    filter.addEventListener("input", () => this.#render());
    list.addEventListener("keydown", (event) => this.#key(event));
  }

  show(answer: Processes) {
    this.answer = answer;
    this.#render();
  }

  // `pid` as the address has it: with or without the start.
  select(pid: string) {
    this.selected = pid;
    for (const row of this.list.querySelectorAll("button")) row.setAttribute("aria-pressed", String(this.#isSelected(row.dataset.id ?? "")));
  }

  find(pid: string) {
    return this.answer?.processes.find((process) => process.id === pid || String(process.pid) === pid);
  }

  #isSelected(id: string) {
    return id === this.selected || (this.selected !== "" && id.split("@")[0] === this.selected);
  }

  #render() {
    if (this.answer === null) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const { processes, cpu_seconds } = this.answer;
    const matching = processes.filter(({ comm, pid, executable }) => `${comm} ${pid} ${executable ?? ""}`.toLowerCase().includes(wanted));
    this.counter.textContent = wanted ? `${matching.length} of ${processes.length}` : String(processes.length);
    const largest = Math.max(...processes.slice(0, 1).map((process) => process.cpu_seconds), 0);
    const rows = matching.slice(0, SHOWN).map((process) => this.#row(process, largest, cpu_seconds));
    if (!wanted) rows.unshift(this.#machine(this.answer));
    if (matching.length > SHOWN) rows.push(element("li", "none", `and ${matching.length - SHOWN} more: narrow them down above`));
    if (matching.length === 0) rows.push(element("li", "none", wanted ? "No process matches." : "No process used CPU in this window."));
    this.list.replaceChildren(...rows);
  }

  #machine({ cpu_seconds, processes }: Processes) {
    return this.#item("", "Whole machine", `${processes.length} ${processes.length === 1 ? "process" : "processes"}`, cpu_seconds, "", 0);
  }

  #row(process: ProcessUsage, largest: number, all: number) {
    const ended = process.ended === null ? "" : " · ended";
    const share = percent(process.cpu_seconds, all);
    const row = this.#item(process.id, printable(process.comm, 200), `${process.pid}${ended}`, process.cpu_seconds, share,
      largest === 0 ? 0 : process.cpu_seconds / largest);
    row.querySelector("button")!.title = printable(process.executable ?? process.comm, 400);
    return row;
  }

  #item(id: string, name: string, pid: string, cpu: number, share: string, fraction: number) {
    const row = element("button", "process");
    row.type = "button";
    row.dataset.id = id;
    row.setAttribute("aria-pressed", String(this.#isSelected(id)));
    const comm = element("bdi", "comm", name);
    row.append(comm, element("span", "cpu", seconds(cpu)), element("span", "pid", pid), element("span", "share", share));
    if (id !== "") {
      const track = element("span", "bar-track");
      const fill = element("span", "bar-fill");
      fill.style.width = `${Math.max(100 * fraction, 0.5)}%`;
      track.append(fill);
      row.append(track);
    }
    row.addEventListener("click", () => this.onSelect(id));
    const item = element("li");
    item.append(row);
    return item;
  }

  #key(event: KeyboardEvent) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const rows = [...this.list.querySelectorAll("button")];
    const next = rows[rows.findIndex((row) => row === document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  }
}
