// SPDX-License-Identifier: Apache-2.0
// Copies a text to the clipboard. For a page over plain HTTP from another host, browsers offer only the old way.

export async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed, but the old way may be.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  const before = document.activeElement as HTMLElement | null;
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  return isDone;
}
