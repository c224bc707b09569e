// SPDX-License-Identifier: Apache-2.0
// Shared by tests of the page over fixed content (fixture_server.cc): a server and a browser for each suite, and a page
// for each of its tests. Environment: FLAMED_FIXTURE, the server's path.
import { after, afterEach, before, beforeEach } from "node:test";

import { Browser, Daemon } from "./browser.mjs";

// Those of the running suite: each file has a process of its own.
export let daemon;
export let browser;
export let page;

// For the calling suite, or for a whole file. `options` are those of Browser.page().
export function useFixture({ clipboard = false, ...options } = {}) {
  before(async () => {
    daemon = await Daemon.start(process.env.FLAMED_FIXTURE);
    browser = await Browser.launch();
    if (clipboard) await browser.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: daemon.url });
  });
  after(async () => {
    await browser?.close();
    await daemon?.stop();
  });
  beforeEach(async () => {
    page = await browser.page(daemon.url, options);
  });
  afterEach(async () => {
    await page.close();
  });
}
