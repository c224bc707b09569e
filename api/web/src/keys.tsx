// SPDX-License-Identifier: Apache-2.0
// Keys that work everywhere on the page, and the dialog that lists them and the keys of the page's parts.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./keys.css";

export interface Key {
  key: string; // as KeyboardEvent.key; `shown` lists several keys for the same action
  shown?: string;
  what: string;
  act?: () => void; // without it, the focused part of the page handles the key itself
}

interface Group {
  name: string;
  keys: readonly Key[];
}

const groups = signal<readonly Group[]>([]);

export function addKeys(name: string, keys: readonly Key[]): () => void {
  const group = { name, keys };
  groups.value = [...groups.peek(), group];
  return () => (groups.value = groups.peek().filter((other) => other !== group));
}

// For a component, while it is mounted.
export function useKeys(name: string, keys: readonly Key[]) {
  useEffect(() => addKeys(name, keys), []);
}

const isWriting = (target: EventTarget | null) =>
  target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
  if (document.querySelector("dialog[open]") !== null) return;
  const found = groups.peek().flatMap(({ keys }) => keys).find(({ key, act }) => key === event.key && act !== undefined);
  if (found === undefined) return;
  event.preventDefault();
  found.act!();
});

export function KeysDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useKeys("Everywhere", [{ key: "?", what: "This list", act: () => dialog.current?.showModal() }]);
  const sections = new Map<string, Key[]>();
  for (const { name, keys } of groups.value) sections.set(name, [...(sections.get(name) ?? []), ...keys]);
  // A click outside of the content hits the dialog itself.
  const closeBeside = (event: MouseEvent) => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  return (
    <dialog id="keys" class="keys" aria-labelledby="keys-title" ref={dialog} onClick={closeBeside}>
      <div class="keys-content">
        <h2 id="keys-title">Keys</h2>
        {[...sections].map(([name, keys]) => (
          <section key={name}>
            <h3>{name}</h3>
            <dl>
              {keys.map(({ key, shown, what }) => (
                <div key={what}>
                  <dt>{(shown ?? key).split(" ").map((each) => <kbd key={each}>{each}</kbd>)}</dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <form method="dialog"><button class="primary">Close</button></form>
      </div>
    </dialog>
  );
}

export const showKeys = () => document.querySelector<HTMLDialogElement>("#keys")?.showModal();
