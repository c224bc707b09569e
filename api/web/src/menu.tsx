// SPDX-License-Identifier: Apache-2.0
// A button that opens a popover beside itself. The browser closes that on Escape or a click elsewhere.
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import "./menu.css";

interface Properties {
  id: string;
  label: string;
  icon: ComponentChildren;
  text?: string;
  children: ComponentChildren;
  onOpen?: () => void;
}

const MARGIN = 8;

export function Menu({ id, label, icon, text, children, onOpen }: Properties) {
  const button = useRef<HTMLButtonElement>(null);
  const place = (event: ToggleEvent) => {
    const opened = event.newState === "open";
    button.current!.setAttribute("aria-expanded", String(opened));
    if (!opened) return;
    onOpen?.();
    const menu = event.currentTarget as HTMLElement;
    const from = button.current!.getBoundingClientRect();
    const { width } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(MARGIN, Math.min(from.right - width, innerWidth - width - MARGIN))}px`;
    menu.style.top = `${from.bottom + 6}px`;
    menu.querySelector<HTMLElement>("a, button, input, select")?.focus();
  };
  // Up and Down move between entries. Letters are left to fields.
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) return;
    const entries = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("a[href], button:not(:disabled)")];
    const next = (entries.indexOf(document.activeElement as HTMLElement) + step + entries.length) % entries.length;
    event.preventDefault();
    entries[next]?.focus();
  };
  return (
    <>
      <button type="button" class={text === undefined ? "tool" : "tool with-text"} id={`${id}-button`} ref={button} popovertarget={id} aria-expanded="false"
        aria-label={text === undefined ? label : undefined} title={label}>
        {icon}{text !== undefined && <span>{text}</span>}
      </button>
      <div id={id} class="menu" role="group" popover="auto" aria-label={label} onToggle={place} onKeyDown={move}>{children}</div>
    </>
  );
}

export const closeMenu = (id: string) => document.getElementById(id)?.hidePopover();
export const openMenu = (id: string) => document.getElementById(id)?.showPopover();
