// SPDX-License-Identifier: Apache-2.0
// The head of the page: the window, the search, the filters and the exports.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./bar.css";
import { file, health, nowMs } from "../daemon";
import { prepareSearch } from "../graph/shown/shown";
import { BACK, DONE, FORWARD, LINK, MOON, PAUSE, PLAY, QUESTION, SUN, SYSTEM } from "../icons";
import { showKeys, useKeys } from "../keys";
import { lastingAddress } from "../link";
import { goLive, oldSeconds, pause, step } from "../live";
import { about, askedWindow, profile } from "../questions";
import { ask, isLive, look, question, view } from "../state";
import { duration, span } from "../text";
import { THEMES, setTheme, theme } from "../theme";
import { AddFilter, Chips } from "./chips";
import { Export } from "./export";
import { parseWhen } from "./when";

const RANGES = [["5m", "now-5m"], ["15m", ""], ["1h", "now-1h"], ["6h", "now-6h"], ["24h", "now-24h"]];
const DEFAULT_LENGTH_MS = 900000;

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <path class="outer" d="M17 2c1 6-7 8-7 16a4 4 0 0 0 2 3c-1-3 1-5 3-7 0 4 6 5 5 10 3-1 6-4 6-8 0-7-7-8-9-14z" />
      <path class="inner" d="M16 21c-2 2-4 3-4 5.5A4 4 0 0 0 16 30a4 4 0 0 0 4-3.5c0-2.5-3-3-4-5.5z" />
    </svg>
  );
}

function HealthLabel() {
  const answer = health.value;
  if (answer === null) return null;
  const failing = answer.components.filter((component) => !component.ok);
  const isWell = answer.status === "ok";
  return (
    <a id="health" class={isWell ? "health" : "health bad"} href="/healthz" title={answer.components.map(({ name, detail }) => `${name}: ${detail}`).join("\n")}>
      {isWell ? (answer.file === undefined ? "sampling" : "file") : `failing: ${failing.map((component) => component.name).join(", ")}`}
    </a>
  );
}

// The field's text while it is not edited: relative times as they were entered, others as clock times.
function windowText(): string {
  const { from, to } = question.value;
  const window = askedWindow.value;
  if (isLive.value && (from === "" || /^now-/.test(from))) return `last ${from === "" ? "15m" : from.replace(/^now-?/, "")}`;
  return window === null ? [from, to || "now"].join(" – ") : span(window.from_ms, window.to_ms);
}

function When() {
  const input = useRef<HTMLInputElement>(null);
  const draft = useSignal<string | null>(null); // the text being edited; dropped if it is not submitted
  useKeys("Bar", [
    { key: "t", what: "Jump to a time", act: () => input.current?.select() },
    { key: "[", what: "Step back by a window", act: () => step(-1) },
    { key: "]", what: "Step forward by a window", act: () => step(1) },
    { key: "l", what: "Live, or pause", act: () => (isLive.peek() ? pause() : goLive()) },
  ]);
  const refused = profile.problem.value?.parameter;
  const isRefused = refused === "from" || refused === "to";
  const shown = isRefused ? [question.value.from, question.value.to].filter((text) => text !== "").join(" – ") : windowText();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const window = askedWindow.peek();
    const asked = parseWhen(draft.peek() ?? shown, new Date(nowMs()), window === null ? DEFAULT_LENGTH_MS : window.to_ms - window.from_ms);
    input.current!.blur();
    ask(asked);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") input.current!.blur();
  };
  return (
    <form id="window-form" class="when" aria-label="Time" noValidate onSubmit={submit}>
      <button type="button" id="step-back" class="tool" aria-label="Step back" title="Step back  [" onClick={() => step(-1)}>{BACK}</button>
      <input id="when" ref={input} type="text" autocomplete="off" spellcheck={false} autocapitalize="off" value={draft.value ?? shown} aria-label="Window of time"
        aria-describedby="when-help" aria-invalid={isRefused ? "true" : undefined} onFocus={() => input.current!.select()}
        onInput={(event) => (draft.value = event.currentTarget.value)} onBlur={() => (draft.value = null)} onKeyDown={key} />
      <p id="when-help" class="when-help" aria-hidden="true">
        <b>14:05</b> around that time · <b>14:05 – 14:10</b> · <b>now-15m</b> · <b>yesterday 14:05</b> · <b>2026-01-31 14:05</b> · unix time
      </p>
      <button type="button" id="step-forward" class="tool" aria-label="Step forward" title="Step forward  ]" disabled={isLive.value} onClick={() => step(1)}>{FORWARD}</button>
    </form>
  );
}

function Live() {
  if (file.value !== null) return null;
  const live = isLive.value;
  const old = oldSeconds.value;
  return (
    <>
      <button type="button" id="live" class={`tool with-text${old === null ? "" : " old"}`} aria-pressed={live} title={live ? "Pause: keep this window  l" : "Continue to now  l"}
        onClick={live ? pause : goLive}>
        {live ? PAUSE : PLAY}<span>Live</span>
      </button>
      {old !== null && <span id="updated" class="updated">updated {duration(1000 * old)} ago</span>}
    </>
  );
}

function Ranges() {
  const { from, to } = question.value;
  return (
    <div class="ranges" role="group" aria-label="Recent time" id="ranges">
      {RANGES.map(([label, start]) => (
        <button key={label} type="button" data-from={start} aria-pressed={to === "" && from === start} onClick={() => ask({ from: start, to: "" })}>{label}</button>
      ))}
    </div>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  useKeys("Bar", [{ key: "/", what: "Search functions", act: () => input.current?.select() }]);
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    look({ search: "" }, "replace");
    input.current!.blur();
  };
  return (
    <label class="search">
      <span class="visually-hidden">Search functions</span>
      <input id="search" ref={input} type="search" placeholder="Search functions" autocomplete="off" spellcheck={false} value={view.value.search}
        onFocus={prepareSearch} onInput={(event) => look({ search: event.currentTarget.value }, "replace")} onKeyDown={key} />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

const COPIED_MS = 2000;

function CopyLink() {
  const state = useSignal<"" | "copied" | "shown">("");
  const address = useSignal("");
  const field = useRef<HTMLInputElement>(null);
  const copy = async () => {
    address.value = lastingAddress();
    try {
      await navigator.clipboard.writeText(address.value);
      state.value = "copied";
      setTimeout(() => (state.value = ""), COPIED_MS);
    } catch {
      // Pages over plain HTTP from another host may not write to the clipboard.
      state.value = "shown";
    }
  };
  useKeys("Bar", [{ key: "c", what: "Copy a link to this view", act: copy }]);
  useEffect(() => field.current?.select(), [state.value]);
  const isCopied = state.value === "copied";
  return (
    <>
      <button type="button" id="copy-link" class="tool" disabled={about.value === null} aria-label="Copy link" title="Copy a link that shows the same  c" data-address={address.value} onClick={copy}>
        {isCopied ? DONE : LINK}
      </button>
      <span class={isCopied ? "copied" : "visually-hidden"} role="status">{isCopied ? "Link copied" : ""}</span>
      {state.value === "shown" && (
        <input ref={field} class="link-field" type="text" readonly aria-label="Link to this view" value={address.value} onBlur={() => (state.value = "")} />
      )}
    </>
  );
}

const THEME_ICONS = { system: SYSTEM, light: SUN, dark: MOON };

function ThemeButton() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  return (
    <button type="button" id="theme" class="tool" aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value}; then ${next}`} onClick={() => setTheme(next)}>
      {THEME_ICONS[theme.value]}
    </button>
  );
}

export function Bar() {
  return (
    <header class="bar">
      <div class="brand"><Logo /><h1>flamed</h1><HealthLabel /></div>
      <div class="time"><When /><Live /><Ranges /></div>
      <div class="bar-tools">
        <Search />
        <AddFilter />
        <CopyLink />
        <Export />
        <ThemeButton />
        <button type="button" id="keys-button" class="tool" aria-label="Keys" title="Keys  ?" onClick={showKeys}>{QUESTION}</button>
      </div>
      <Chips />
    </header>
  );
}
