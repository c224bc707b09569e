// SPDX-License-Identifier: Apache-2.0
// The thirty tasks of docs/tasks.md: each starts on a freshly loaded page, is done with three actions at most (a click, a
// drag, a key, or one field typed with Enter), and has an answer that is known beforehand and read from the screen.
// Prints how long each took.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, describe, it } from "node:test";

import { NOW, answered, mirror, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const MOST_ACTIONS = 3;
const SOURCE = process.env.FLAMED_PAGE_SOURCES ?? fileURLToPath(new URL("../../api/web/src", import.meta.url));
const tested = [];

describe("with three actions at most", () => {
  useFixture({ clipboard: true, width: 1440, height: 900, reducedMotion: "reduce" });
  afterEach(() => assert.deepEqual(page.troubles, []));

  const query = async () => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);

  // What an action has changed is on the screen a moment later.
  async function soon(check) {
    for (const deadline = performance.now() + 10_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
      try {
        return await check();
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
    }
  }

  // `answer` reads the screen. `chosen` are options of Browser.page().
  function task(sentence, actions, answer, chosen = null) {
    tested.push(sentence);
    it(sentence, async () => {
      assert.ok(actions.length <= MOST_ACTIONS);
      const asked = chosen === null ? page : await browser.page(daemon.url, chosen);
      await open(asked, daemon.url);
      const since = performance.now();
      for (const act of actions) await act(asked);
      await soon(() => answer(asked));
      console.log(`${sentence} ${actions.length} ${actions.length === 1 ? "action" : "actions"}, ${Math.round(performance.now() - since)} ms`);
      if (asked !== page) {
        assert.deepEqual(asked.troubles, []);
        await asked.close();
      }
    });
  }
  // Actions that the daemon answers.
  const click = (selector) => (page) => answered(page, () => page.click(selector));
  const press = (key) => (page) => answered(page, () => page.keyboard.press(key));
  const type = (field, written) => (page) => answered(page, async () => {
    await page.fill(field, written);
    await page.press(field, "Enter");
  });
  // Actions that change only what is shown of an answer.
  const view = (mode) => (page) => page.click(`#modes [data-mode="${mode}"]`);
  const show = (selector) => (page) => page.click(selector);
  const key = (name) => (page) => page.keyboard.press(name);
  const search = (written) => async (page) => {
    await page.fill("#search", written);
    await page.press("#search", "Enter");
  };
  const dragOver = (selector, from, to) => async (page) => {
    const box = await page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
    await page.mouse.move(box.x + from[0] * box.width, box.y + from[1] * box.height);
    await page.mouse.down();
    await page.mouse.move(box.x + to[0] * box.width, box.y + to[1] * box.height, { steps: 3 });
    await page.mouse.up();
  };
  const time = (written) => type("#when", written);
  const service = click('[data-id^="4242@"]');
  const java = type("#process-filter", "java");
  const waiting = click("#measures >> text=Waiting");
  const reason = (name) => click(`#reasons [data-reason="${name}"]`);
  const filters = show("#filters-button");
  const byLine = click('#filters .entry:has-text("Tell functions apart by line")');

  const names = async (page) => (await mirror(page)).map(({ name }) => name);
  const first = async (page, depth = 1) => (await mirror(page)).filter((frame) => frame.depth === depth);
  const order = (page) => page.waitForSelector("#graph-time .flame-item[data-depth='1']");
  const timeOf = async (page, name) => (await mirror(page)).filter((frame) => frame.name === name).reduce((sum, { value }) => sum + value, 0);
  // Of calls of a function in the order of time, their milliseconds within the second.
  async function placesOf(page, name) {
    const [whole] = await page.$$eval("#graph-time .flame-canvas", (all) => all.map((canvas) => canvas.getBoundingClientRect().toJSON()));
    const boxes = await page.$$eval("#graph-time .flame-item", (all, wanted) => all.filter(({ dataset }) => dataset.name === wanted).map((item) => item.getBoundingClientRect().toJSON()), name);
    assert.ok(boxes.length > 0, `no ${name}`);
    return boxes.map(({ x, width }) => [((x - whole.x) / whole.width) * 1000, ((x + width - whole.x) / whole.width) * 1000]);
  }
  const isWithin = (places, from, to) => places.every(([begin, end]) => begin >= from && end <= to);

  describe("in the order of time", () => {
    task("What was this thread doing at 14:03:11?", [time("14:03:11 - 14:03:11.4"), service, view("time")], async (page) => {
      await order(page);
      assert.match(await text(page, "#order-head"), /^worker-314:03:11 – 14:03:11.400/);
      const [found, parsed] = [await timeOf(page, "std::map<std::string, Rate>::find(std::string const&)"), await timeOf(page, "json::Parser::string()")];
      assert.ok(found > 2 * parsed, `${found} us ${parsed} us`);
    });
    task("When in a second does the service write its answers?", [time("14:02:00 - 14:02:01"), service, view("time")], async (page) => {
      await order(page);
      const places = await placesOf(page, "tcp_sendmsg");
      assert.ok(isWithin(places, 225, 335), JSON.stringify(places));
    });
    task("Did the stock service work all the time, or with breaks?", [time("14:02:00 - 14:02:01"), java, view("time")], async (page) => {
      await order(page);
      const places = await placesOf(page, "com.shop.Stock.scan");
      assert.ok(isWithin(places, 0, 405), JSON.stringify(places));
    });
  });

  describe("by thread", () => {
    task("Which threads does the service have, and which is the main one?", [service, view("time")], async (page) => {
      await page.waitForSelector(".track");
      const tracks = await page.$$eval(".track", (all) => all.map((track) => [track.dataset.track, /main/.test(track.textContent)]));
      assert.deepEqual(tracks.map(([id]) => Number(id.split("/")[1])).sort(), [4242, 4243, 4244, 4245]);
      assert.deepEqual(tracks.filter(([, isMain]) => isMain).map(([id]) => id), ["4242@90000/4242"]);
    });
    task("Which thread waited for a lock all the time?", [service, waiting, view("time")], async (page) => {
      await page.waitForSelector("#thread-waits");
      assert.match(await text(page, "#thread-waits"), /worker-1 waited/);
      assert.match(await text(page, "#thread-waits"), /Lock .*(8\d|9\d)\.\d %/);
    });
    task("How much of the service's CPU time did each thread use?",
      [service, filters, (page) => answered(page, () => page.selectOption("#filters label select", "thread"))], async (page) => {
        const threads = await first(page);
        assert.equal(threads.length, 4);
        for (const { name, value } of threads) assert.ok(Math.abs(value / 10470 - 0.25) < 0.02, `${name} ${value}`);
        assert.ok(threads.some(({ name }) => name.includes("worker-3")), threads.map(({ name }) => name).join());
      });
  });

  describe("bottom-up", () => {
    task("In which function does the CPU time end, whoever called it?", [service, view("bottom-up")], async (page) => {
      const [hottest] = await first(page);
      assert.deepEqual([hottest.name, hottest.value], ["price_with_tax(Item const&)", 4200]);
    });
    task("What is the hottest function, and who calls it?", [view("sandwich")], async (page) => {
      await page.waitForSelector("#graph-callers .flame-item");
      assert.equal(await text(page, "#middle"), "price_with_tax(Item const&)");
      const callers = await page.$$eval("#graph-callers .flame-item", (items) => items.map(({ dataset }) => dataset.name));
      assert.ok(callers.includes("Cart::total() const"));
    });
    task("What does sending cost, in all of its functions?", [service, view("bottom-up"), search("tcp")], async (page) => {
      // 900 of 10,470 samples.
      await page.waitForFunction(() => document.querySelector("#search-result").textContent === "8.60 % matched");
    });
  });

  describe("by line", () => {
    task("Which line of the hottest function is it?", [filters, byLine, view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^price_with_tax\(Item const&\) cart\.cc:88/);
    });
    task("From which line is the map searched?", [filters, byLine, view("bottom-up")], async (page) => {
      const found = await mirror(page);
      const search = found.findIndex(({ name, depth }) => depth === 1 && name.startsWith("std::map"));
      assert.equal(found[search + 1].name, "price_with_tax(Item const&) cart.cc:93");
    });
    task("Which line of the Java code is it?", [java, filters, byLine], async (page) => {
      assert.ok((await names(page)).includes("com.shop.Stock.scan Stock.java:57"), (await names(page)).join());
    });
  });

  describe("waiting", () => {
    task("Who held the lock?", [service, waiting, reason("lock")], async (page) => {
      assert.ok((await names(page)).includes("[held by worker-3 (4245)]"), (await names(page)).join());
    });
    task("Why was the service slow at two?", [time("13:58 - 14:02"), waiting, service], async (page) => {
      const reasons = await page.$$eval("#reasons [data-reason]", (all) => all.map(({ dataset }) => dataset.reason));
      assert.equal(reasons[0], "lock");
    });
    task("Which function waits for the disk?", [service, waiting, reason("disk")], async (page) => {
      const shown = await names(page);
      assert.ok(shown.includes("Journal::commit()") && !shown.includes("Session::lock()"), shown.join());
    });
  });

  describe("of managed runtimes", () => {
    task("Which Java method uses the most CPU time?", [java, view("sandwich")], async (page) => {
      await page.waitForSelector("#graph-callers .flame-item");
      assert.equal(await text(page, "#middle"), "com.shop.Stock.scan");
    });
    task("How much of the JVM's time is garbage collection?", [java, search("GCTaskThread")], async (page) => {
      // 600 of 3,100 samples.
      await page.waitForFunction(() => document.querySelector("#search-result").textContent === "19.4 % matched");
    });
    task("Through which calls does the JVM come to the hottest method?", [java, view("bottom-up")], async (page) => {
      const found = await mirror(page);
      const at = found.findIndex(({ name, depth }) => depth === 1 && name === "com.shop.Stock.scan");
      assert.deepEqual(found.slice(at + 1, at + 3).map(({ name }) => name), ["com.shop.Stock.reserve", "JavaThread::run()"]);
    });
  });

  describe("of the past", () => {
    task("What kept the machine busy at noon?", [time("12:00 - 12:05"), view("bottom-up")], async (page) => {
      const [hottest] = (await first(page)).sort((a, b) => b.value - a.value);
      assert.equal(hottest.name, "c_parse_file()");
    });
    task("What was it that used the CPU for two seconds, three minutes ago?", [
      click("#heat-toggle"),
      // It stands out in the heat map.
      (page) => answered(page, () => dragOver("#heat", [(900 - 142) / 900, 0.99], [(900 - 136) / 900, 0.01])(page)),
    ], async (page) => {
      const { from, to } = await query();
      assert.ok(Date.parse(from) <= NOW - 139_000 && Date.parse(to) >= NOW - 138_000, `${from} ${to}`);
      const found = (await mirror(page)).filter(({ kind }) => kind !== "root");
      const hottest = found.find(({ name }) => name.startsWith("std::map"));
      assert.ok(hottest.value > found[0].value / 3, "what only the burst did is not wide");
    });
    task("What did the backup do, which has ended?", [click('#ranges [data-from="now-1h"]'), type("#process-filter", "backup")], async (page) => {
      assert.equal((await query()).pid, "2222@30000");
      assert.ok((await names(page)).includes("ZSTD_compressBlock"));
    });
  });

  describe("compared", () => {
    task("What is different from an hour ago?", [click("#what-changed"), view("table")], async (page) => {
      assert.equal((await query()).base_ago, "1h");
      await page.waitForSelector(".rows [data-index='0']");
      // The batch's jobs are new.
      assert.match(await text(page, '.rows [data-index="0"]'), /^workvictim0 %.*\+10\.8significant$/);
    });
    task("What has changed against the five minutes before?", [click('#ranges [data-from="now-5m"]'), press("d"), view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^odd\(int\).*significant$/);
    });
    task("Was it like this last Tuesday?", [show("#compare-button")], async (page) => {
      // Of the fixture's three hours it can only be said that they do not reach so far.
      const entry = '#compare .entry:has-text("a week ago")';
      assert.match(await text(page, entry), /samples begin at 2026-01-31 11:05:30/);
      assert.ok(await page.isDisabled(entry));
    });
  });

  describe("in containers", () => {
    // LXC's have names, and Docker's only ids that flamed knows.
    for (const [sentence, typed, pid, function_] of [
      ["What does the container stage-7 do?", "stage-7", "5150@80000", "odd(int)"],
      ["What does the container 3f1c9a0b7d2e do?", "3f1c9a0b7d2e", "31337@70000", "com.shop.Stock.scan"],
      ["What runs in Docker, and what does it do?", "docker", "31337@70000", "com.shop.Stock.scan"],
    ]) {
      task(sentence, [type("#process-filter", typed)], async (page) => {
        assert.equal((await query()).pid, pid);
        assert.ok((await names(page)).includes(function_), typed);
      });
    }
  });

  describe("by phone or keyboard", () => {
    task("On a phone: what does the busiest service do?", [service, view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^price_with_tax/);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
    }, { width: 390, height: 844, reducedMotion: "reduce" });
    task("By keys: how much is reading JSON?", [key("/"), async (page) => {
      await page.keyboard.type("json");
      await page.keyboard.press("Enter");
    }], async (page) => {
      const { samples } = await (await fetch(`${daemon.url}/profile?format=top`)).json();
      const share = `${((100 * 1800) / samples).toFixed(1)} % matched`;
      await page.waitForFunction((wanted) => document.querySelector("#search-result").textContent === wanted, share);
    });
    task("By keys: a link to what I see, for a colleague.", [key("c")], async (page) => {
      await page.waitForSelector(".copied");
      const shown = await mirror(page);
      const link = await page.evaluate(() => navigator.clipboard.readText());
      const other = await browser.page(daemon.url, { now: NOW + 3600_000 });
      await open(other, link);
      assert.deepEqual(await mirror(other), shown);
      await other.close();
    });
  });

  it("exports what it shows", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    await page.keyboard.press("e");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click('#export a:has-text("pprof")')]);
    assert.equal(download.suggestedFilename(), "checkout-api-2026-01-31-1350.pb.gz");
  });
});

describe("the list of tasks in the docs", () => {
  it("is what is tested", () => {
    const listed = [...readFileSync(`${SOURCE}/../../../docs/tasks.md`, "utf-8").matchAll(/^\| \d+ \| ([^|]+?) \|/gm)].map(([, sentence]) => sentence);
    assert.equal(listed.length, 30);
    assert.deepEqual(listed, tested);
  });
});
