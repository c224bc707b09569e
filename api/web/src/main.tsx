// SPDX-License-Identifier: Apache-2.0
import "./tokens.css";
import "./page.css";

import { effect } from "@preact/signals";
import { render } from "preact";

import { App } from "./app";
import { isSettled, round } from "./asking";
import { askHealth, file, listenForDaemon, whenBack } from "./daemon";
import { startReader } from "./graph/tree/workers";
import { keepLive } from "./live";
import { heading } from "./title";

startReader();
whenBack(() => round.value++);
render(<App />, document.getElementById("app")!);
keepLive();
void listenForDaemon();

effect(() => {
  const host = file.value?.host;
  document.title = `${heading.value.name} – ${host ? `${host} – ` : ""}flamed`;
});

// How often all queries have been answered and painted. Tests wait for it.
effect(() => {
  if (!isSettled.value) return;
  requestAnimationFrame(() => {
    if (!isSettled.peek()) return;
    document.body.dataset.loaded = String(Number(document.body.dataset.loaded ?? 0) + 1);
    void askHealth();
  });
});
