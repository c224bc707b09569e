// SPDX-License-Identifier: Apache-2.0
// The content of a region without an answer, or while it waits for one.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import "./states.css";
import type { Asking } from "./asking";
import { file, isAway, lookForDaemon } from "./daemon";
import { bytes, dateTime } from "./text";

export interface Action {
  label: string;
  act: () => void;
}

interface NoticeProperties {
  title: string;
  sentences: readonly string[];
  actions?: readonly Action[];
  isBad?: boolean;
}

// In the middle of an otherwise empty region. The first action is the most likely one.
export function Notice({ title, sentences, actions = [], isBad = false }: NoticeProperties) {
  return (
    <div class={isBad ? "notice bad" : "notice"} id="notice" role="status">
      <svg viewBox="0 0 24 24" aria-hidden="true">
        <path d="M12.5 2.5c.6 4-4.7 5.4-4.7 11a4.7 4.7 0 0 0 9.4.4c0-4.3-3.3-6-4.7-11.4zM12 20.8v.7M7 20l-.5.6M17 20l.5.6" />
      </svg>
      <h3>{title}</h3>
      {sentences.map((sentence) => <p key={sentence}>{sentence}</p>)}
      <div class="actions">
        {actions.map(({ label, act }, index) => (
          <button key={label} type="button" class={index === 0 ? "primary" : "quiet"} onClick={act}>{label}</button>
        ))}
      </div>
    </div>
  );
}

const PATIENCE_MS = 700;

// A line along the region's upper edge, and after a while its progress and a button to cancel.
export function Waiting({ asking, what }: { asking: Asking<unknown>; what: string }) {
  const isLong = useSignal(false);
  const progress = asking.progress.value;
  const isUnderWay = progress !== null;
  useEffect(() => {
    isLong.value = false;
    if (!isUnderWay) return undefined;
    const timer = setTimeout(() => (isLong.value = true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [isUnderWay]);
  if (progress === null) return null;
  return (
    <>
      <div class="progress" />
      {isLong.value && (
        <p class="waiting" role="status">
          {progress.stage === "asking" ? `The daemon computes ${what}` : `Receiving ${what}: ${bytes(progress.bytes)}`}
          <button type="button" class="quiet" onClick={() => asking.cancel()}>Cancel</button>
        </p>
      )}
    </>
  );
}

// Over the content that is still shown, which stays readable.
export function Away(): ComponentChildren {
  if (!isAway.value) return null;
  return (
    <div class="away" id="away" role="alert">
      <p><b>flamed does not answer.</b> It has stopped or is being restarted. This page goes on as soon as it is back.</p>
      <p>On the host: <code>systemctl status flamed</code></p>
      <button type="button" class="quiet" onClick={lookForDaemon}>Try now</button>
    </div>
  );
}

// That this is not the host as it is now.
export function OpenedFile(): ComponentChildren {
  const opened = file.value;
  if (opened === null || isAway.value) return null;
  const { name, host, window } = opened;
  return (
    <aside class="opened-file" id="opened-file" aria-label="File">
      <p>
        <b>{host === null ? "A file of an unknown host" : `A file of the host ${host}`}</b>, from {dateTime(window.from_ms)} to {dateTime(window.to_ms)}. Its
        end is “now”, and nothing is sampled. <code>{name}</code>
      </p>
    </aside>
  );
}
