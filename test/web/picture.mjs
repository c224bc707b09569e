// SPDX-License-Identifier: Apache-2.0
// Makes the README's pictures from the daemon's samples of picture/load.sh: flamegraph.png and flamegraph-dark.png.
// Checks that they show the load. Environment: FLAMED_URL; FLAMED_SECONDS, how long the load has run; FLAMED_SHOTS, the
// folder of the pictures.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";

import { Browser, mirror, open, painted, shot, text } from "./browser.mjs";

const SIZE = { width: 1280, height: 1100 };
const MOST_BYTES = 300_000;
const ROW_PX = 20; // as in layout.ts
const LOAD = "/run/shop"; // as in load.sh

const url = process.env.FLAMED_URL;
const seconds = Number(process.env.FLAMED_SECONDS);

// Fixed times, so that both pictures show the same, without the browser's own load. The timeline shows the whole load.
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
// Node 18 names compiled functions differently from later versions.
const path = pathTo(await ask("/profile", { pid: shop.id, from, to }), /^(JS|LazyCompile|Function):.answer .*\/shop\.js/);
assert.ok(path !== undefined, "the function that answers requests was not found in the shop's profile");

const browser = await Browser.launch();
try {
  for (const [name, colorScheme] of [["flamegraph", "light"], ["flamegraph-dark", "dark"]]) {
    const page = await browser.page(new URL(url).origin, { ...SIZE, colorScheme, now: null, timeZone: "UTC" });
    const query = new URLSearchParams({ pid: shop.id, from, to, line, heat: 1, processes: LOAD });
    await open(page, `${url}/?${query}#${new URLSearchParams(path.map((frame) => ["zoom", frame]))}`);
    // Shows the callees rather than the callers, which are also in the path above the graph.
    await page.$eval(".graph", (box, top) => (box.scrollTop = top), (path.length - 1) * ROW_PX);
    await page.waitForLoadState("networkidle"); // the processes' sparklines come last
    await shot(page, name);

    assert.deepEqual(page.troubles, []);
    assert.match(await text(page, "#process-list"), /node/);
    assert.equal(await page.$("#heat-problem"), null);
    assert.ok((await mirror(page)).some(({ name: frame }) => frame === path.at(-1)), "the graph is not of the shop's own functions");
    assert.ok((await painted(page)).share > 0.1, "the graph is empty");
    const { size } = statSync(join(process.env.FLAMED_SHOTS, `${name}.png`));
    assert.ok(size < MOST_BYTES, `${name}.png has ${size} bytes`);
    await page.close();
  }
} finally {
  await browser.close();
}
