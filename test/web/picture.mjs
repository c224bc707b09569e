// SPDX-License-Identifier: Apache-2.0
// Makes the pictures of docs/ from the daemon's samples of picture/load.sh: the README's flamegraph.png, and one of each
// main state of the page, page-*.png, all of them in light and dark, and with a palette. Checks that they show the load.
// Environment: FLAMED_URL; FLAMED_SECONDS, how long the load has run; FLAMED_SHOTS, the folder of the pictures.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";

import { Browser, mirror, open, painted, shot, text } from "./browser.mjs";

const README_SIZE = { width: 1280, height: 1100 };
const STATE_SIZE = { width: 1440, height: 900 };
const MOST_BYTES = 150_000;
const ROW_PX = 20; // as in layout.ts
const LOAD = "/run/shop"; // as in load.sh

const url = process.env.FLAMED_URL;
const seconds = Number(process.env.FLAMED_SECONDS);

// Fixed times, so that light and dark ones show the same, without the browser's own load. The timeline shows the whole load.
// The window begins when its programs are warm.
const to = Math.floor(Date.now() / 1000) * 1000;
const from = to - Math.ceil(seconds * 0.6) * 1000;
const line = `${to - seconds * 1000}-${to}`;

const ask = async (path, parameters) => (await fetch(`${url}${path}?${new URLSearchParams(parameters)}`)).json();

// The names from below the root down to the largest frame whose name matches.
function pathTo(root, pattern) {
  let best = { value: 0 };
  const search = ({ name, value, children = [] }, path) => {
    if (!pattern.test(name)) for (const child of children) search(child, [...path, child.name]);
    else if (value > best.value) best = { value, path };
  };
  search(root, []);
  return best.path;
}

const { processes: [shop, ...others] } = await ask("/processes", { unit: "shop", from, to });
assert.ok(shop !== undefined && others.length === 0, "the load's shop was not found, alone in its control group");
const path = pathTo(await ask("/profile", { pid: shop.id, from, to }), /^answer$/);
assert.ok(path !== undefined, "the function that answers requests was not found in the shop's profile");

const zoom = new URLSearchParams(path.map((frame) => ["zoom", frame]));
const half = (from + to) / 2;

// What is shown by a query, in the time of the pictures unless it has another.
const STATES = {
  all: { cgroup: "/shop.slice" },
  process: { pid: shop.id, hash: zoom },
  sandwich: { pid: shop.id, view: "sandwich" },
  table: { cgroup: "/shop.slice", view: "table" },
  comparison: { cgroup: "/shop.slice", from: half, base_from: from, base_to: half },
  second: { pid: shop.id, heat: 1 },
  "bottom-up": { pid: shop.id, view: "bottom-up", beside: 1 },
  lines: { pid: shop.id, view: "code", hash: new URLSearchParams({ frame: "takeOrder" }) },
  time: { pid: shop.id, view: "time", from: to - 4000 },
  waiting: { cgroup: "/shop.slice", measure: "wait" },
};

// What has to be seen in some of them.
const SHOWN = { "bottom-up": ".flame-item[data-depth='1']", lines: "#code .source", time: ".track", waiting: "#reasons [data-reason]" };

// A mark, as a deploy would set it, where the window's second half begins.
await fetch(`${url}/marks`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text: "deploy 1.2.3", time_ms: half }) });

const browser = await Browser.launch();

// Opens a state, has `check` look at it, and saves its picture.
async function picture(name, size, colorScheme, { hash = "", ...query }, check) {
  const page = await browser.page(new URL(url).origin, { ...size, colorScheme, now: null, timeZone: "UTC" });
  await open(page, `${url}/?${new URLSearchParams({ from, to, line, processes: LOAD, ...query })}#${hash}`);
  // Shows the callees rather than the callers, which are also in the path above the graph.
  if (hash === zoom) await page.$eval(".graph", (box, top) => (box.scrollTop = top), (path.length - 1) * ROW_PX);
  await page.waitForLoadState("networkidle"); // the processes' sparklines come last
  const file = `${name}${colorScheme === "dark" ? "-dark" : ""}`;
  await shot(page, file);
  assert.deepEqual(page.troubles, []);
  assert.match(await text(page, "#process-list"), /node/);
  assert.equal(await page.$("#heat-problem, #notice"), null);
  await check(page);
  await page.close();
  const png = join(process.env.FLAMED_SHOTS, `${file}.png`);
  execFileSync("pngquant", ["--force", "--strip", "--speed", "1", "--output", png, "256", png]);
  assert.ok(statSync(png).size < MOST_BYTES, `${file}.png has ${statSync(png).size} bytes`);
}

async function showsTheShop(page) {
  assert.ok((await mirror(page)).some(({ name }) => name === path.at(-1)), "the graph is not of the shop's own functions");
  assert.ok((await painted(page)).share > 0.1, "the graph is empty");
}

try {
  for (const colorScheme of ["light", "dark"]) {
    await picture("flamegraph", README_SIZE, colorScheme, { pid: shop.id, heat: 1, hash: zoom }, showsTheShop);
    for (const [name, query] of Object.entries(STATES)) {
      await picture(`page-${name}`, STATE_SIZE, colorScheme, query, query.hash === zoom ? showsTheShop : (page) => page.waitForSelector(SHOWN[name] ?? "#graph, .grid"));
    }
  }
} finally {
  await browser.close();
}
