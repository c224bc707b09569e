// SPDX-License-Identifier: Apache-2.0
// A browser of Debian's, and pages in it that say what went wrong in them.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

// What a browser asks of the network on its own behalf is switched off; what is left is the page's.
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
  async page(origin, { width = 1280, height = 800, colorScheme = "light" } = {}) {
    const page = await this.context.newPage();
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    page.troubles = [];
    page.on("console", (message) => {
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

// A program that prints its address first, as the fixture server does.
export class Daemon {
  static start(path) {
    const child = spawn(path, [], { stdio: ["ignore", "pipe", "inherit"] });
    const daemon = new Daemon(child);
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`${path} ended with ${code}`)));
      createInterface({ input: child.stdout }).once("line", (line) => {
        daemon.url = line.trim();
        resolve(daemon);
      });
    });
  }

  constructor(child) {
    this.child = child;
    this.ended = new Promise((resolve) => child.once("exit", resolve));
  }

  async stop() {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGTERM");
    await this.ended;
  }
}

// Opens an address of the page and waits until it shows what it asked for.
export async function open(page, url) {
  await page.goto(url);
  await loaded(page);
}

// Waits until the page has shown `times` answers since it was opened.
export async function loaded(page, times = 1) {
  await page.waitForFunction((wanted) => Number(document.body.dataset.loaded ?? 0) >= wanted, times);
  // One frame more: the canvas is painted in it.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

export const loads = (page) => page.evaluate(() => Number(document.body.dataset.loaded ?? 0));

// The frames that the page tells those who can't see the canvas.
export const mirror = (page) =>
  page.$$eval("#mirror li", (items) =>
    items.map(({ textContent, dataset }) => ({ text: textContent, name: dataset.name, kind: dataset.kind, value: Number(dataset.value), depth: Number(dataset.depth) })));

// How many different colours the canvas shows, and how much of it is painted.
export const painted = (page) =>
  page.$eval("#canvas", (canvas) => {
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
