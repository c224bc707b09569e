// SPDX-License-Identifier: Apache-2.0
// Debian's browser, and pages in it that report their errors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

import { binary } from "./columns.mjs";

// The time at which the fixture server's clock is stopped: FakeSources::kNowNs.
export const NOW = Date.UTC(2026, 0, 31, 14, 5, 30);

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
const SHOTS = process.env.FLAMED_SHOTS ?? ".";
const MOST_NODES = 2000;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

// The browser's own network requests are switched off, so all requests are the page's.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--no-proxy-server", "--force-color-profile=srgb"];

export class Browser {
  static async launch() {
    const profile = mkdtempSync(join(tmpdir(), "flamed-chromium-"));
    const context = await chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, headless: true, args: FLAGS, viewport: null });
    return new Browser(context.browser() ?? context, context, profile);
  }

  constructor(browser, context, profile) {
    Object.assign(this, { browser, context, profile });
  }

  // A page with a log of what went wrong: console errors, exceptions, requests that leave `origin`.
  // `now` is what the page takes for the time, or null for the machine's.
  async page(origin, { width = 1280, height = 800, density = 1, colorScheme = "light", reducedMotion = "no-preference", now = NOW, timeZone = "" } = {}) {
    const page = await this.context.newPage();
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme, reducedMotion });
    if (now !== null) await page.clock.setFixedTime(now);
    if (density !== 1) {
      const session = await this.context.newCDPSession(page);
      await session.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: density, mobile: false });
    }
    if (timeZone !== "") {
      const session = await this.context.newCDPSession(page);
      await session.send("Emulation.setTimezoneOverride", { timezoneId: timeZone });
    }
    page.troubles = [];
    page.on("console", (message) => {
      // The browser logs queries that the daemon refuses. The page shows the reason.
      if (/^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text())) return;
      if (message.type() === "error" || message.type() === "warning") page.troubles.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => page.troubles.push(`exception: ${error.message}`));
    page.on("dialog", (dialog) => {
      page.troubles.push(`dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== origin) page.troubles.push(`external request: ${request.url()}`);
    });
    return page;
  }

  async close() {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}

// A program that first prints its address, like the fixture server.
export class Daemon {
  static start(path) {
    const child = spawn(path, [], { stdio: ["pipe", "pipe", "inherit"] });
    const daemon = new Daemon(child);
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`${path} ended with ${code}`)));
      daemon.lines.once("line", (line) => {
        daemon.url = line.trim();
        resolve(daemon);
      });
    });
  }

  constructor(child) {
    this.child = child;
    this.lines = createInterface({ input: child.stdout });
    this.ended = new Promise((resolve) => child.once("exit", resolve));
  }

  // Advances the clock of the fixture's machine, not the pages' own clocks: see page.clock.
  async goOn(seconds) {
    const gone = new Promise((resolve) => this.lines.once("line", resolve));
    this.child.stdin.write(`go on ${seconds}\n`);
    assert.equal(await gone, "gone on");
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    await this.ended;
  }
}

// Opens an address of the page and waits until it shows its answers.
export async function open(page, url) {
  await page.goto(url);
  await loaded(page);
}

// Waits until the page has shown `times` answers since it was opened.
export async function loaded(page, times = 1) {
  await page.waitForFunction((wanted) => Number(document.body.dataset.loaded ?? 0) >= wanted, times);
  await frames(page);
}

// Waits for one more frame, in which the canvas is painted.
export const frames = (page) =>
  page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));

export const loads = (page) => page.evaluate(() => Number(document.body.dataset.loaded ?? 0));

// Runs an action, and waits until the page has shown the daemon's answer to it.
export async function answered(page, act) {
  const before = await loads(page);
  await act();
  await loaded(page, before + 1);
}

// The frames in the tree for users who can't see the canvas.
export const mirror = (page) =>
  page.$$eval(".flame-item", (items) =>
    items.map(({ ariaLabel, dataset }) => ({ text: ariaLabel, name: dataset.name, kind: dataset.kind, value: Number(dataset.value), depth: Number(dataset.depth) })));

// The number of different colours on the canvas, and its painted share.
export const painted = (page) =>
  page.$eval(".flame-canvas", (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    let count = 0;
    for (let i = 0; i < data.length; i += 4) {
      if (data[i + 3] === 0) continue;
      count++;
      if (colours.size < 1000) colours.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    return { colours: colours.size, share: count / (data.length / 4) };
  });

// Requests for the graph of a profile, for page.route().
export const ofGraph = (url) => url.pathname === "/profile" && url.searchParams.get("format") === "columns-binary";
// Requests for an answer in words.
export const ofSummary = (url) => url.searchParams.get("format") === "summary";

// Answers the page's requests of `path` with `change(answer)` instead of the daemon's answer.
export const answerInstead = (page, path, change) =>
  page.route((url) => url.pathname === path && !ofSummary(url), async (route) => {
    const isBinary = route.request().url().includes("columns-binary");
    const answer = await page.context().request.get(route.request().url().replace("columns-binary", "columns"));
    const changed = change(await answer.json(), new URL(route.request().url()));
    await (isBinary ? route.fulfill({ body: binary(changed) }) : route.fulfill({ json: changed }));
  });

export const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

export const shot = (page, name, options = {}) => page.screenshot({ path: join(SHOTS, `${name}.png`), ...options });

// Checks the page's present state: no errors so far, no finding of axe-core, a small document. Takes a screenshot. With
// `coloursOnly` axe-core checks nothing but colours.
export async function inspect(page, name, { troubles = [], coloursOnly = false, ...options } = {}) {
  await shot(page, name, options);
  assert.deepEqual(page.troubles, troubles, name);
  const nodes = await page.$$eval("*", (elements) => elements.length);
  assert.ok(nodes < MOST_NODES, `${name}: ${nodes} nodes`);
  await page.evaluate(AXE);
  const chosen = coloursOnly ? { runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] } } : { rules: { "target-size": { enabled: true } } };
  const found = await page.evaluate(async (chosen) => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...chosen });
    // The edges of a short window are close to each other. They may be, since the field of times sets them as well (WCAG
    // 2.5.8, "equivalent").
    const isEdge = ({ html }) => html.includes('role="slider"');
    for (const violation of violations) if (violation.id === "target-size") violation.nodes = violation.nodes.filter((node) => !isEdge(node));
    return violations.filter(({ nodes }) => nodes.length > 0).map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary})`).join("; ")}`);
  }, chosen);
  assert.deepEqual(found, [], name);
}

// A drag within an element, from and to shares of its width and height.
export async function drag(page, selector, from, to, { modifier = "", release = true } = {}) {
  const box = await page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
  const point = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  if (modifier !== "") await page.keyboard.down(modifier);
  await page.mouse.move(...point(from));
  await page.mouse.down();
  await page.mouse.move(...point([(from[0] + to[0]) / 2, (from[1] + to[1]) / 2]));
  await page.mouse.move(...point(to));
  if (release) await page.mouse.up();
  if (modifier !== "") await page.keyboard.up(modifier);
}
