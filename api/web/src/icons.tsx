// SPDX-License-Identifier: Apache-2.0
// Icons of buttons, drawn on a grid of 20 with lines in the colour of their text.

const icon = (path: string) => (
  <svg viewBox="0 0 20 20" aria-hidden="true"><path d={path} /></svg>
);

export const BACK = icon("M12 4l-6 6 6 6");
export const FORWARD = icon("M8 4l6 6-6 6");
export const PAUSE = icon("M7 5v10M13 5v10");
export const PLAY = icon("M6.5 4.5l9 5.5-9 5.5z");
export const LINK = icon("M8.5 11.5a3.5 3.5 0 0 0 5 0l2.5-2.5a3.5 3.5 0 0 0-5-5l-1 1M11.5 8.5a3.5 3.5 0 0 0-5 0L4 11a3.5 3.5 0 0 0 5 5l1-1");
export const DONE = icon("M4 10.5l4 4 8-9");
export const EXPORT = icon("M10 3v9M6.5 8.5L10 12l3.5-3.5M4 13v3h12v-3");
export const FILTER = icon("M3 5h14M6 10h8M8.5 15h3");
export const SYSTEM = icon("M3 4h14v9H3zM7 17h6M10 13v4");
export const SUN = icon("M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2v2M10 16v2M2 10h2M16 10h2M4.5 4.5l1.4 1.4M14.1 14.1l1.4 1.4M4.5 15.5l1.4-1.4M14.1 5.9l1.4-1.4");
export const MOON = icon("M16.5 12A7 7 0 0 1 8 3.5a7 7 0 1 0 8.5 8.5z");
export const QUESTION = icon("M7.5 7.5a2.5 2.5 0 1 1 3.6 2.2c-.7.4-1.1.9-1.1 1.8M10 14.5v.1");
export const DOWN = icon("M5.5 8l4.5 4.5L14.5 8");
export const FLAG = icon("M5 17V4h10l-2.5 3.5L15 11H5");
export const CROSS = icon("M6 6l8 8M14 6l-8 8");
