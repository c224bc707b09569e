// SPDX-License-Identifier: Apache-2.0
// Light, dark, or the system's theme. It belongs to the reader and not to the page's state, so the browser stores it,
// and a sent link does not change it.
import { computed, effect, signal } from "@preact/signals-core";

export type Theme = "system" | "light" | "dark";
export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "flamed.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY) as Theme;
    return THEMES.includes(value) ? value : "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

const system = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(system.matches);
system.addEventListener("change", () => (systemIsDark.value = system.matches));

export const theme = signal<Theme>(stored());
export const isDark = computed(() => (theme.value === "system" ? systemIsDark.value : theme.value === "dark"));

export function setTheme(value: Theme) {
  theme.value = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Then it holds until the page is closed.
  }
}

// A colour or font of tokens.css, for a canvas. Read within an effect it follows the theme.
export function token(name: string): string {
  isDark.value;
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Not an effect of a component, since canvases read tokens as soon as the signal changes.
effect(() => {
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
});
