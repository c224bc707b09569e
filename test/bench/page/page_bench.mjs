// SPDX-License-Identifier: Apache-2.0
// Measures how fast the page is, in a real browser over page_bench_server: one JSON object on stdout. Environment:
// FLAMED_FIXTURE, the server's path; FLAMED_PAGE_MINUTES, the length of its history; FLAMED_DAEMON and FLAMED_MONTH, the
// daemon and a history that history_bench has made, or nothing; FLAMED_PAGE_ONLY=machine, =views or =month, for that part
// alone. Runs in run.sh's copy of test/web.
//
// The page marks the measured times itself (performance.measure): "flamed:first-paint" from the end of an answer until
// its graph is painted, "flamed:paint" for one drawing, "flamed:hover" and "flamed:search" for one pointer event or one
// letter. A release of the brush counts until the requested graph is painted. On the machine with 2,000 processes the
// first graph counts from the navigation on, and each click, wheel step and key, in a graph of all nodes of the window,
// from its event until the next frame is painted; the same again with a browser that is four times slower. Views that ask
// the daemon count twice: until that next frame, and until what they show is there. A month is shown by the daemon itself,
// from disk: cold is the first question to a daemon that has just begun, with no file in the page cache; warm is the next.
import { execFileSync, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { Browser, loaded, ofGraph } from "./browser.mjs";

const REPEATS = Number(process.env.FLAMED_PAGE_REPEATS ?? 5);
const BRUSHES = Number(process.env.FLAMED_PAGE_BRUSHES ?? 40);
const ONLY = process.env.FLAMED_PAGE_ONLY ?? "";
const MONTH = process.env.FLAMED_MONTH ?? "";
const measures = (part) => ONLY === "" || ONLY === part;
const SEARCHES = ["function_1", "part_7", "std::vector", "function_19999", "no such function"];

const round = (value) => Math.round(value * 100) / 100;
function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]);
  return { count: sorted.length, median: at(0.5), p95: at(0.95), max: at(1) };
}

async function start(path) {
  const child = spawn(path, [process.env.FLAMED_PAGE_MINUTES ?? "1440", "4", ...(ONLY === "" ? [] : ["build"])], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`${path} has ended`)));
    createInterface({ input: child.stdout }).once("line", resolve);
  });
  return { child, url };
}

// Bytes on the wire.
const sent = (url) => new Promise((resolve, reject) => {
  get(url, { headers: { "Accept-Encoding": "gzip" } }, (answer) => {
    const parts = [];
    answer.on("data", (part) => parts.push(part));
    answer.on("end", () => resolve({ bytes: Buffer.concat(parts).length, encoding: answer.headers["content-encoding"] }));
  }).once("error", reject);
});

async function bundle(url) {
  const html = await (await fetch(url)).text();
  const files = [...html.matchAll(/(?:href|src)="(\/assets\/main[^"]+)"/g)].map((found) => found[1]);
  let bytes = 0;
  for (const file of files) bytes += (await sent(url + file)).bytes;
  return { files: files.length, bytes };
}

// Keeps every measure, since the page keeps only the latest of each.
const keepMeasures = () => {
  window.measures = [];
  new PerformanceObserver((list) => {
    for (const { name, startTime, duration } of list.getEntries()) window.measures.push({ name, end: startTime + duration, duration });
  }).observe({ type: "measure" });
};
const durations = (page, name) => page.evaluate((wanted) => window.measures.filter((measure) => measure.name === wanted).map(({ duration }) => duration), name);
const forget = (page) => page.evaluate(() => {
  window.measures = [];
});
const frames = (page, count = 2) => page.evaluate(async (many) => {
  for (let i = 0; i < many; i++) await new Promise((resolve) => requestAnimationFrame(resolve));
}, count);

async function heap(page, session) {
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize = 0 } = await session.send("Runtime.getHeapUsage");
  return usedSize + backingStorageSize;
}

const boxOf = (page) => page.$eval(".flame-canvas", (canvas) => canvas.getBoundingClientRect().toJSON());

async function hovers(page, box) {
  await forget(page);
  for (let i = 0; i < 60; i++) await page.mouse.move(box.x + ((i * 37) % 97) / 97 * box.width, box.y + 10 + (i * 21) % 180);
  return spread(await durations(page, "flamed:hover"));
}

async function tree(browser, url, nodes) {
  const page = await browser.page(url, { now: null, height: 900 });
  await page.addInitScript(keepMeasures);
  // More than the page requests by itself.
  await page.route(ofGraph, (route) => {
    const asked = new URL(route.request().url());
    asked.searchParams.set("max_nodes", "1000000");
    return route.continue({ url: asked.href });
  });
  const session = await browser.context.newCDPSession(page);
  const firstPaints = [];
  const reads = [];
  for (let i = 0; i < REPEATS; i++) {
    await page.goto("about:blank");
    await page.goto(`${url}/?pid=${nodes}&from=now-5m`, { timeout: 120_000 });
    await page.waitForFunction(() => window.measures.some(({ name }) => name === "flamed:first-paint"), undefined, { timeout: 120_000 });
    await loaded(page);
    firstPaints.push(...(await durations(page, "flamed:first-paint")).slice(0, 1));
    reads.push(...(await durations(page, "flamed:read")));
  }
  const box = await boxOf(page);
  const hover_ms = await hovers(page, box);
  const zooms = [];
  for (let i = 0; i < 12; i++) {
    await forget(page);
    await page.mouse.click(box.x + ((i * 29 + 11) % 89) / 89 * box.width, box.y + 21 * 4 + 10);
    await page.waitForTimeout(350);
    await page.keyboard.press("Escape");
    await page.waitForTimeout(350);
    zooms.push(...(await durations(page, "flamed:paint")));
  }
  const searches = [];
  for (const text of SEARCHES) {
    await forget(page);
    await page.fill("#search", text);
    await page.waitForFunction(() => window.measures.some(({ name }) => name === "flamed:search"));
    searches.push(...(await durations(page, "flamed:search")));
    await frames(page);
  }
  const result = {
    first_paint_ms: spread(firstPaints), read_ms: spread(reads), hover_ms, zoom_draw_ms: spread(zooms), search_ms: spread(searches),
    dom_nodes: await page.$$eval("*", (elements) => elements.length), heap_bytes: await heap(page, session),
  };
  await page.close();
  return result;
}

// Windows of all lengths anywhere in the history.
async function brushes(browser, url) {
  const page = await browser.page(url, { now: null, height: 900 });
  await page.addInitScript(keepMeasures);
  await page.addInitScript(() => addEventListener("pointerup", () => (window.released = performance.now()), { capture: true }));
  await page.goto(`${url}/?from=now-2h&to=now-1h`);
  await loaded(page);
  const box = await page.$eval("#timeline .u-over", (over) => over.getBoundingClientRect().toJSON());
  const took = [];
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < BRUSHES; i++) {
    const length = 0.01 + 0.3 * random() ** 2;
    const from = 0.02 + random() * (0.93 - length);
    await forget(page);
    await page.mouse.move(box.x + from * box.width, box.y + box.height * 0.6);
    await page.mouse.down();
    await page.mouse.move(box.x + (from + length) * box.width, box.y + box.height * 0.6, { steps: 3 });
    await page.mouse.up();
    await page.waitForFunction(() => window.measures.some(({ name, end }) => name === "flamed:first-paint" && end > window.released), undefined, { timeout: 60_000 });
    took.push(await page.evaluate(() => window.measures.find(({ name, end }) => name === "flamed:first-paint" && end > window.released).end - window.released));
    await page.waitForTimeout(50);
  }
  const nodes = await page.$$eval("*", (elements) => elements.length);
  await page.close();
  return { release_to_paint_ms: spread(took), dom_nodes: nodes };
}

// From an event until what it did is on the screen.
const keepResponses = () => {
  window.responses = [];
  for (const type of ["click", "keydown", "wheel", "change"]) {
    // A field that is left has changed as well.
    addEventListener(type, ({ timeStamp, target }) => (type !== "change" || target.tagName === "SELECT") && requestAnimationFrame(() => setTimeout(() => window.responses.push(performance.now() - timeStamp))), { capture: true, passive: true });
  }
};

// Of twelve actions.
async function responses(page, act) {
  await page.evaluate(() => (window.responses = []));
  for (let i = 0; i < 12; i++) {
    await act(i);
    await page.waitForTimeout(300);
  }
  return spread(await page.evaluate(() => window.responses));
}

const clickIn = (page, box, i) => page.mouse.click(box.x + ((i * 29 + 11) % 89) / 89 * box.width, box.y + 20 * (i % 6) + 10);

// From the navigation until the first graph is painted.
async function firstGraph(page, url) {
  await page.goto(url, { timeout: 120_000 });
  await page.waitForFunction(() => window.measures.some(({ name }) => name === "flamed:first-paint"), undefined, { timeout: 120_000 });
  return page.evaluate(() => window.measures.find(({ name }) => name === "flamed:first-paint").end);
}

// Shows a window that is over, since of such the page fetches all nodes, and returns their number.
async function showAll(page, url) {
  const rest = page.waitForResponse((response) => ofGraph(new URL(response.url())) && !response.url().includes("max_nodes"));
  await page.goto(`${url}/?from=now-30m&to=now-1s`, { timeout: 120_000 });
  const address = (await rest).url();
  await page.waitForFunction(() => document.querySelector(".fetching") === null);
  await loaded(page);
  const { columns } = await (await fetch(address.replace("columns-binary", "columns"))).json();
  return columns.nodes.frame.length;
}

async function machine(browser, url, slowdown) {
  const page = await browser.page(url, { now: null, width: 1440, height: 900 });
  await page.addInitScript(keepMeasures);
  await page.addInitScript(keepResponses);
  const session = await browser.context.newCDPSession(page);
  const graphs = [];
  for (let i = 0; i < REPEATS; i++) {
    await page.goto("about:blank");
    await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
    graphs.push(await firstGraph(page, url));
    await loaded(page);
  }
  const nodes = await showAll(page, url);
  const processes = await page.$eval("#processes-count", (count) => Number(count.textContent));
  const box = await boxOf(page);
  const result = { processes, nodes, first_graph_ms: spread(graphs) };
  result.graph_click_ms = await responses(page, (i) => clickIn(page, box, i));
  await page.focus("#graph");
  result.graph_key_ms = await responses(page, (i) => page.keyboard.press(["Escape", "ArrowDown", "ArrowDown", "Enter", "ArrowRight", "Backspace"][i % 6]));
  await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
  result.graph_wheel_ms = await responses(page, (i) => page.mouse.wheel(0, i % 2 === 0 ? 120 : -120));
  result.hover_ms = await hovers(page, box);
  await page.keyboard.press("Escape");
  // There and back again, and clicks and keys in it.
  for (const mode of ["bottom-up", "sandwich", "table"]) {
    const name = mode.replace("-", "_");
    result[`to_${name}_ms`] = await responses(page, (i) => page.click(`#modes [data-mode="${i % 2 === 0 ? mode : "icicle"}"]`));
  }
  await page.click('#modes [data-mode="table"]');
  result.rows_by_ms = await responses(page, (i) => page.selectOption("#rows", ["module", "file", ""][i % 3]));
  await page.click('#modes [data-mode="bottom-up"]');
  result.bottom_up_click_ms = await responses(page, (i) => clickIn(page, box, i));
  result.bottom_up_hover_ms = await hovers(page, box);
  await page.click("#crumbs .first button");
  await page.click('#modes [data-mode="icicle"]');
  result.table_beside_ms = await responses(page, () => page.keyboard.press("b"));
  await page.click("#beside");
  result.row_ms = await responses(page, (i) => page.click(`.rows [data-index="${i % 8}"]`));
  await page.click("#beside");
  result.fold_ms = await responses(page, () => page.click("#collapse"));
  const list = await page.$eval("#process-list", (element) => element.getBoundingClientRect().toJSON());
  await page.mouse.move(list.x + 40, list.y + 200);
  result.list_wheel_ms = await responses(page, (i) => page.mouse.wheel(0, i % 2 === 0 ? 600 : -600));
  result.list_open_ms = await responses(page, () => page.click('[data-id="exe cc1plus"] .twisty'));
  result.list_key_ms = await responses(page, async (i) => {
    await page.focus("#process-list");
    await page.keyboard.press(["Home", "PageDown", "ArrowDown", "ArrowUp"][i % 4]);
  });
  result.list_search_ms = await responses(page, async (i) => {
    await page.focus("#process-filter");
    await page.keyboard.press("cc1plus build"[i]);
  });
  await page.fill("#process-filter", "");
  result.list_choose_ms = await responses(page, (i) => page.click(`#process-list [role=treeitem]:nth-child(${2 + (i % 5)}) .name`));
  result.dom_nodes = await page.$$eval("*", (elements) => elements.length);
  await page.close();
  return result;
}

// The busy process, whose thread never calls the same twice, and the whole machine. [name, query, what is clicked, what is
// there then].
const VIEWS = [
  ["time", "pid=300&from=now-15m&to=now-1s", '#modes [data-mode="time"]', "#graph-time .flame-item[data-depth='1']"],
  ["threads", "pid=500&from=now-15m&to=now-1s", '#modes [data-mode="time"]', ".track"],
  ["lines", "from=now-15m&to=now-1s", '#modes [data-mode="code"]', "#code [data-line]"],
  ["instructions", "from=now-15m&to=now-1s&view=code", '#code-by [data-by="instructions"]', "#code [data-address]"],
  ["waiting", "from=now-15m&to=now-1s", "#measures >> text=Waiting", "#reasons [data-reason]"],
];

async function views(browser, url, slowdown) {
  const page = await browser.page(url, { now: null, width: 1440, height: 900 });
  await page.addInitScript(keepResponses);
  const session = await browser.context.newCDPSession(page);
  const result = {};
  for (const [name, query, clicked, shown] of VIEWS) {
    const [painted, there] = [[], []];
    for (let i = 0; i < REPEATS; i++) {
      await page.goto("about:blank");
      await session.send("Emulation.setCPUThrottlingRate", { rate: slowdown });
      await page.goto(`${url}/?${query}`, { timeout: 120_000 });
      await loaded(page);
      await page.waitForLoadState("networkidle"); // the rest of the page is not part of it
      await page.evaluate((selector) => {
        window.responses = [];
        addEventListener("click", ({ timeStamp }) => {
          const look = () => (document.querySelector(selector) === null ? requestAnimationFrame(look) : setTimeout(() => (window.there = performance.now() - timeStamp)));
          look();
        }, { capture: true, once: true });
      }, shown);
      await page.click(clicked);
      await page.waitForFunction(() => window.there !== undefined, undefined, { timeout: 60_000 });
      painted.push(...(await page.evaluate(() => window.responses)));
      there.push(await page.evaluate(() => window.there));
    }
    result[name] = { painted_ms: spread(painted), there_ms: spread(there) };
    if (name === "time") result[name].note = await page.$eval("#order-note", (note) => note.textContent);
  }
  await page.close();
  return result;
}

const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

async function startDaemon() {
  const url = `http://127.0.0.1:${await freePort()}`;
  const child = spawn(process.env.FLAMED_DAEMON, ["--listen", new URL(url).host, "--cpu-budget", "off", "--history", MONTH], { stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  while (!(await fetch(`${url}/readyz`).then(({ ok }) => ok, () => false))) {
    if (child.exitCode !== null) throw new Error(`the daemon has ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { child, url, ended };
}

// As in history_bench.cc.
const MONTH_FROM = 1_767_268_800_000;
const MONTH_TO = MONTH_FROM + 28 * 86_400_000;

async function month(browser) {
  const [cold, warm] = [[], []];
  const result = {};
  for (let i = 0; i < REPEATS; i++) {
    for (const file of readdirSync(MONTH)) execFileSync("dd", [`if=${join(MONTH, file)}`, "iflag=nocache", "count=0", "status=none"]);
    const { child, url, ended } = await startDaemon();
    try {
      const page = await browser.page(url, { now: null, width: 1440, height: 900 });
      await page.addInitScript(keepMeasures);
      await page.addInitScript(keepResponses);
      const window = `from=${MONTH_FROM}&to=${MONTH_TO}`;
      cold.push(await firstGraph(page, `${url}/?${window}`));
      await loaded(page);
      await page.goto("about:blank");
      warm.push(await firstGraph(page, `${url}/?${window}`));
      await loaded(page);
      if (i === REPEATS - 1) {
        await page.waitForLoadState("networkidle", { timeout: 120_000 });
        await page.waitForFunction(() => document.querySelector(".fetching") === null, undefined, { timeout: 120_000 });
        const box = await boxOf(page);
        result.click_ms = await responses(page, (at) => clickIn(page, box, at));
        result.hover_ms = await hovers(page, box);
        result.note = (await (await fetch(`${url}/profile?${window}&max_nodes=2`)).json()).warnings.join(" ");
      }
      await page.close();
    } finally {
      child.kill("SIGTERM");
      await ended;
    }
  }
  return { cold_ms: spread(cold), warm_ms: spread(warm), ...result };
}

const { child, url } = ONLY === "month" ? {} : await start(process.env.FLAMED_FIXTURE);
const browser = await Browser.launch();
try {
  const figures = {};
  if (ONLY === "") {
    Object.assign(figures, { bundle: await bundle(url), brush: await brushes(browser, url) });
    for (const nodes of [200_000, 1_000_000]) figures[`tree_${nodes}`] = await tree(browser, url, nodes);
  }
  for (const slowdown of [1, 4]) {
    if (measures("machine")) figures[`machine_${slowdown}`] = await machine(browser, url, slowdown);
    if (measures("views")) figures[`views_${slowdown}`] = await views(browser, url, slowdown);
  }
  if (measures("month") && MONTH !== "") figures.month = await month(browser);
  console.log(JSON.stringify(figures, null, 2));
} finally {
  await browser.close();
  child?.kill("SIGTERM");
}
