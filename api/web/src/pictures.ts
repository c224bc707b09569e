// SPDX-License-Identifier: Apache-2.0
// The graph as a picture. Set by the graph while it shows one.
import { signal } from "@preact/signals";

export interface Pictures {
  svg: () => Blob | Promise<Blob>;
  png: () => Blob | Promise<Blob>;
}

export const pictures = signal<Pictures | null>(null);

export function save(content: Blob, name: string) {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has its own reference by then. The address would keep the data until the page is closed.
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
