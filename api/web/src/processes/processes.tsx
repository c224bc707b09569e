// SPDX-License-Identifier: Apache-2.0
// Who used CPU in the window.
import { useSignal } from "@preact/signals";

import "./processes.css";
import type { ProcessUsage } from "../answers";
import { processes } from "../questions";
import { isMachine, question, select } from "../state";
import { percent, printable, seconds } from "../text";

const SHOWN = 200;

interface RowProperties {
  id: string;
  name: string;
  more: string;
  cpu: number;
  share?: string;
  fraction?: number;
  title?: string;
  isSelected: boolean;
}

function Row({ id, name, more, cpu, share = "", fraction, title, isSelected }: RowProperties) {
  return (
    <li>
      <button type="button" class="process" data-id={id} aria-pressed={isSelected} title={title} onClick={() => select(id === "" ? {} : { pid: [id] })}>
        <bdi class="comm">{name}</bdi>
        <span class="cpu">{seconds(cpu)}</span>
        <span class="pid">{more}</span>
        <span class="share">{share}</span>
        {fraction !== undefined && <span class="bar-track"><span class="bar-fill" style={{ width: `${Math.max(100 * fraction, 0.5)}%` }} /></span>}
      </button>
    </li>
  );
}

const isSelected = ({ id, pid }: ProcessUsage) => question.value.pid.includes(id) || question.value.pid.includes(String(pid));

function moveFocus(event: KeyboardEvent) {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const rows = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
  const next = rows[rows.findIndex((row) => row === document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

export function Processes() {
  const filter = useSignal("");
  const answer = processes.answer.value;
  const wanted = filter.value.trim().toLowerCase();
  const all = answer?.processes ?? [];
  const matching = all.filter(({ comm, pid, executable }) => `${comm} ${pid} ${executable ?? ""}`.toLowerCase().includes(wanted));
  const largest = all[0]?.cpu_seconds ?? 0;
  return (
    <section class="processes" aria-labelledby="processes-title">
      <div class="pane-head">
        <h2 id="processes-title">Processes</h2>
        <span id="processes-count" class="count">{wanted ? `${matching.length} of ${all.length}` : all.length}</span>
      </div>
      <label class="filter">
        <span class="visually-hidden">Filter processes</span>
        <input id="process-filter" type="search" placeholder="Filter by name or pid" autocomplete="off" spellcheck={false}
          onInput={(event) => (filter.value = event.currentTarget.value)} />
      </label>
      <ul id="process-list" class="process-list" onKeyDown={moveFocus}>
        {!wanted && answer !== null && (
          <Row id="" name="Whole machine" more={`${all.length} ${all.length === 1 ? "process" : "processes"}`} cpu={answer.cpu_seconds} isSelected={isMachine.value} />
        )}
        {matching.slice(0, SHOWN).map((process) => (
          <Row key={process.id} id={process.id} name={printable(process.comm, 200)} more={`${process.pid}${process.ended === null ? "" : " · ended"}`}
            cpu={process.cpu_seconds} share={percent(process.cpu_seconds, answer!.cpu_seconds)} fraction={largest === 0 ? 0 : process.cpu_seconds / largest}
            title={printable(process.executable ?? process.comm, 400)} isSelected={isSelected(process)} />
        ))}
        {matching.length > SHOWN && <li class="none">and {matching.length - SHOWN} more: narrow them down above</li>}
        {answer !== null && matching.length === 0 && <li class="none">{wanted ? "No process matches." : "No process used CPU in this window."}</li>}
      </ul>
    </section>
  );
}
