// SPDX-License-Identifier: Apache-2.0
// The head of the page: when, what to look for, and what is left out.
import { useEffect, useRef } from "preact/hooks";

import "./bar.css";
import { health } from "../daemon";
import { profile } from "../questions";
import { ask, look, question, view } from "../state";

const RANGES = [["5 min", "now-5m"], ["15 min", ""], ["1 h", "now-1h"], ["6 h", "now-6h"], ["24 h", "now-24h"]];

function HealthLabel() {
  const answer = health.value;
  if (answer === null) return null;
  const failing = answer.components.filter((component) => !component.ok);
  const isWell = answer.status === "ok";
  return (
    <span id="health" class={isWell ? "health" : "health bad"} title={answer.components.map(({ name, detail }) => `${name}: ${detail}`).join("\n")}>
      {isWell ? "sampling" : `failing: ${failing.map((component) => component.name).join(", ")}`}
    </span>
  );
}

function TimeWindow() {
  const { from, to } = question.value;
  const refused = profile.problem.value?.parameter;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const written = new FormData(event.currentTarget as HTMLFormElement);
    ask({ from: String(written.get("from")).trim(), to: String(written.get("to")).trim() });
  };
  const moment = (name: "from" | "to", label: string, placeholder: string, value: string) => (
    <label class="moment">
      <span>{label}</span>
      <input id={name} name={name} type="text" autocomplete="off" spellcheck={false} autocapitalize="off" placeholder={placeholder} value={value}
        aria-describedby="window-help" aria-invalid={refused === name ? "true" : undefined} />
    </label>
  );
  return (
    <form id="window-form" class="window" aria-label="Time window" noValidate onSubmit={submit}>
      <div class="ranges" role="group" aria-label="Recent time" id="ranges">
        {RANGES.map(([label, start]) => (
          <button key={label} type="button" data-from={start} aria-pressed={to === "" && from === start} onClick={() => ask({ from: start, to: "" })}>{label}</button>
        ))}
      </div>
      {moment("from", "From", "now-15m", from)}
      {moment("to", "to", "now", to)}
      <button type="submit" class="primary">Show</button>
      <p id="window-help" class="help">14:05 · now-2h · 2026-01-31T14:05:00Z · unix time</p>
    </form>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
      event.preventDefault();
      input.current?.select();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  return (
    <label class="search">
      <span class="visually-hidden">Search functions</span>
      <input id="search" ref={input} type="search" placeholder="Search functions  ( / )" autocomplete="off" spellcheck={false} value={view.value.search}
        onInput={(event) => look({ search: event.currentTarget.value }, "replace")} />
    </label>
  );
}

export function Bar() {
  return (
    <header class="bar">
      <div class="brand"><Logo /><h1>flamed</h1><HealthLabel /></div>
      <TimeWindow />
      <Search />
    </header>
  );
}

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <path class="outer" d="M17 2c1 6-7 8-7 16a4 4 0 0 0 2 3c-1-3 1-5 3-7 0 4 6 5 5 10 3-1 6-4 6-8 0-7-7-8-9-14z" />
      <path class="inner" d="M16 21c-2 2-4 3-4 5.500A4 4 0 0 0 16 30a4 4 0 0 0 4-3.500c0-2.500-3-3-4-5.500z" />
    </svg>
  );
}
