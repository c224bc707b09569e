// SPDX-License-Identifier: Apache-2.0
// axe-core finds nothing in any state of the page, light and dark, on a desk and on a phone.
import { describe, it } from "node:test";

import { NOW, frames, inspect, ofSummary, open } from "./browser.mjs";
import { browser, daemon, useFixture } from "./fixture.mjs";

const STATES = {
  machine: "",
  process: "?pid=4242@90000#zoom=_start&zoom=main",
  flame: "?view=flame&search=json",
  "bottom-up": "?view=bottom-up&search=json#up=price_with_tax(Item const%26)&up=Cart::total() const",
  sandwich: "?pid=4242&view=sandwich",
  lines: "?pid=4242&view=code#frame=Cart::total() const",
  source: "?pid=4242&view=code#frame=price_with_tax(Item const%26)",
  instructions: "?pid=4242&view=code&code=instructions",
  table: "?view=table",
  modules: "?view=table&rows=module",
  beside: "?pid=4242&beside=1&view=flame#frame=ksys_write",
  diff: "?from=now-10m&base_from=now-20m&base_to=now-10m",
  "diff-table": "?pid=4242&from=now-10m&base_from=now-20m&base_to=now-10m&view=table&normalise=time",
  heat: "?pid=4242&heat=1&offset_from=240&offset_to=330&top=5",
  time: "?pid=4242&view=time&from=2026-01-31T14:03:11Z&to=2026-01-31T14:03:15Z",
  stretch: "?pid=4242&heat=1&pick=time&from=2026-01-31T13:55:00.240Z&to=2026-01-31T13:55:02.120Z&around=1769867400000-1769868330000",
  units: "?by=unit&from=now-24h",
  families: "?by=tree&from=2026-01-31T11:48:00Z&to=2026-01-31T12:12:00Z",
  empty: "?pid=600",
  refused: "?from=teatime",
};
// Menus, dialogs and the like, opened in the first state.
const OPENED = {
  menu: async (page) => {
    await page.focus("#graph");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+F10");
  },
  tooltip: async (page) => {
    const box = await page.$eval(".flame-canvas", (canvas) => canvas.getBoundingClientRect().toJSON());
    await page.mouse.move(box.x + box.width / 2, box.y + 30);
  },
  export: (page) => page.click("#export-button"),
  filters: (page) => page.click("#filters-button"),
  keys: (page) => page.click("#keys-button"),
  details: (page) => page.click(".details-more"),
  summary: (page) => page.click(".summary-more"),
  compare: (page) => page.click("#compare-button"),
  "add-mark": (page) => page.click("#add-mark-button"),
  mark: (page) => page.focus(".flag"),
  pressure: (page) => page.focus(".flag.pressure"),
};
const SCREENS = { desk: { width: 1440, height: 900 }, phone: { width: 360, height: 740 } };

// The two themes differ in nothing but colours, which is all that is checked of the second one.
async function inspectBoth(page, name) {
  await inspect(page, `axe-${name}-light`);
  await page.emulateMedia({ colorScheme: "dark" });
  await frames(page);
  await inspect(page, `axe-${name}-dark`, { coloursOnly: true });
  await page.emulateMedia({ colorScheme: "light" });
}

describe("axe-core finds nothing", () => {
  useFixture();
  for (const [screen, size] of Object.entries(SCREENS)) {
    it(`on a ${screen}`, async () => {
      const page = await browser.page(daemon.url, { ...size, colorScheme: "light", reducedMotion: "reduce" });
      await page.route(ofSummary, (route) => route.fulfill({ contentType: "text/plain", body: "One program was busy.\nAnother was less so.\n" }));
      await page.route((url) => url.pathname === "/marks", (route) => route.fulfill({ json: { marks: [
        { time_ms: NOW - 3600_000, kind: "restart", text: "flamed started" }, { time_ms: NOW - 600_000, kind: "note", text: "deploy 1.2" },
        { time_ms: NOW - 300_000, to_ms: NOW - 240_000, kind: "pressure", text: "pressure: io 71 %", pressure: { cpu: 0, io: 0.71, memory: 0 }, waits: null },
      ] } }));
      for (const [state, query] of Object.entries(STATES)) {
        await open(page, `${daemon.url}/${query}`);
        await inspectBoth(page, `${state}-${screen}`);
      }
      for (const [state, act] of Object.entries(OPENED)) {
        await open(page, daemon.url);
        await act(page);
        await inspectBoth(page, `${state}-${screen}`);
      }
      await page.goto(`${daemon.url}/help`);
      await inspectBoth(page, `help-${screen}`);
      await page.close();
    });
  }
});
