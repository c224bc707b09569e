// SPDX-License-Identifier: Apache-2.0
// The thirty tasks of docs/tasks.md over fixed content. tasks_live.test.mjs does them over a running daemon.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { NOW, answered, mirror, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";
import { byLine, byThread, click, dragOver, filters, first, isWithin, java, key, names, order, placesOf, press, query, reason, search, show, tasksOn, theListIsTested, time, timeOf, type, view, waiting, write } from "./tasks.mjs";

describe("with three actions at most", () => {
  useFixture({ clipboard: true, width: 1440, height: 900, reducedMotion: "reduce" });

  const task = tasksOn(async (chosen) => ({ page: chosen === null ? page : await browser.page(daemon.url, chosen), url: daemon.url }));
  const service = click('[data-id^="4242@"]');

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
      [service, filters, byThread], async (page) => {
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
      const { from, to } = await query(page);
      assert.ok(Date.parse(from) <= NOW - 139_000 && Date.parse(to) >= NOW - 138_000, `${from} ${to}`);
      const found = (await mirror(page)).filter(({ kind }) => kind !== "root");
      const hottest = found.find(({ name }) => name.startsWith("std::map"));
      assert.ok(hottest.value > found[0].value / 3, "what only the burst did is not wide");
    });
    task("What did the backup do, which has ended?", [click('#ranges [data-from="now-1h"]'), type("#process-filter", "backup")], async (page) => {
      assert.equal((await query(page)).pid, "2222@30000");
      assert.ok((await names(page)).includes("ZSTD_compressBlock"));
    });
  });

  describe("compared", () => {
    task("What is different from an hour ago?", [click("#what-changed"), view("table")], async (page) => {
      assert.equal((await query(page)).base_ago, "1h");
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
        assert.equal((await query(page)).pid, pid);
        assert.ok((await names(page)).includes(function_), typed);
      });
    }
  });

  describe("by phone or keyboard", () => {
    task("On a phone: what does the busiest service do?", [service, view("table")], async (page) => {
      await page.waitForSelector(".rows [data-index='0']");
      assert.match(await text(page, '.rows [data-index="0"]'), /^price_with_tax/);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
    }, { chosen: { width: 390, height: 844, reducedMotion: "reduce" } });
    task("By keys: how much is reading JSON?", [key("/"), write("json")], async (page) => {
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
    assert.deepEqual(page.troubles, []);
  });
});

theListIsTested();
