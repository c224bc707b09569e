// SPDX-License-Identifier: Apache-2.0
// Makes the README's pictures of what the daemon has seen of picture/load.sh: flamegraph.png and flamegraph-dark.png. What it
// tests on the way is that they show what they should. Environment: FLAMED_URL; FLAMED_SECONDS, how long the load has run;
// FLAMED_SHOTS, where the pictures go.
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

// Fixed times, so that both pictures show the same, and not the browser at work. The timeline shows all that the load has run,
// the window begins when its programs are warm.
const to = Math.floor(Date.now() / 1000) * 1000;
const from = to - Math.ceil(seconds * 0.6) * 1000;
const line = `${to - seconds * 1000}-${to}`;

const ask = async (path, parameters) => (await fetch(`${url}${path}?${new URLSearchParams(parameters)}`)).json();

// The names from below the root down to the frame of most samples whose name fits.
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
// Node 18 has other words for compiled functions than later ones.
const path = pathTo(await ask("/profile", { pid: shop.id, from, to }), /^(JS|LazyCompile|Function):.answer .*\/shop\.js/);
assert.ok(path !== undefined, "the function that answers requests was not found in the shop's profile");

const browser = await Browser.launch();
try {
  for (const [name, colorScheme] of [["flamegraph", "light"], ["flamegraph-dark", "dark"]]) {
    const page = await browser.page(new URL(url).origin, { ...SIZE, colorScheme, now: null, timeZone: "UTC" });
    const query = new URLSearchParams({ pid: shop.id, from, to, line, heat: 1, processes: LOAD });
    await open(page, `${url}/?${query}#${new URLSearchParams(path.map((frame) => ["zoom", frame]))}`);
    // What is called, rather than the callers, which the path above the graph tells as well.
    await page.$eval(".graph", (box, top) => (box.scrollTop = top), (path.length - 1) * ROW_PX);
    await page.waitForLoadState("networkidle"); // the courses of the processes come last
    await shot(page, name);

    assert.deepEqual(page.troubles, []);
    assert.match(await text(page, "#process-list"), /node/);
    assert.equal(await page.$("#heat-problem"), null);
    assert.ok((await mirror(page)).some(({ name: frame }) => frame === path.at(-1)), "the graph is not of the shop's own functions");
    assert.ok((await painted(page)).share > 0.3, "the graph is empty");
    const { size } = statSync(join(process.env.FLAMED_SHOTS, `${name}.png`));
    assert.ok(size < MOST_BYTES, `${name}.png has ${size} bytes`);
    await page.close();
  }
} finally {
  await browser.close();
}
