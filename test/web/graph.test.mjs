// SPDX-License-Identifier: Apache-2.0
// The flame graph, its sandwich, table, comparison and pictures, through user input.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";

import { answered, inspect, loaded, mirror, ofGraph, open, painted, text } from "./browser.mjs";
import { binary } from "./columns.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const CART = "Cart::total() const";
const PARSE = "json::parse(std::string_view)";

describe("the graph", () => {
  useFixture({ clipboard: true, reducedMotion: "reduce" });

  const show = (query) => open(page, `${daemon.url}/?pid=4242${query}`);
  const settled = () => page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const address = async () => new URL(await page.evaluate(() => location.href));
  const query = async () => Object.fromEntries((await address()).searchParams);
  const zoom = async (of = "zoom") => new URLSearchParams((await address()).hash.slice(1)).getAll(of);
  const announced = () => text(page, "#announcer");
  // The place of a frame on the screen: items of the tree are over their frames.
  const place = async (name, graph = "#graph") => {
    const found = await page.$$eval(`${graph} .flame-item`, (items, wanted) => {
      const item = items.find(({ dataset }) => dataset.name === wanted);
      return item && item.getBoundingClientRect().toJSON();
    }, name);
    assert.ok(found, `no frame ${name}`);
    return { x: found.x + Math.min(found.width / 2, 40), y: found.y + found.height / 2, top: found.y, left: found.x, width: found.width };
  };
  const clickOn = async (name, graph, options) => {
    const { x, y } = await place(name, graph);
    await page.mouse.click(x, y, options);
    await settled();
  };
  const menu = async (name, entry, graph) => {
    await clickOn(name, graph, { button: "right" });
    await page.click(`.frame-menu button:has-text("${entry}")`);
    await settled();
  };
  const pixel = (x, y, selector = ".flame-canvas") =>
    page.$eval(selector, (canvas, at) => {
      const box = canvas.getBoundingClientRect();
      const density = canvas.width / box.width;
      const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, Math.floor((at.x - box.left) * density), Math.floor((at.y - box.top) * density), 1, 1, 0, 0, 1, 1);
      return [...copy.getImageData(0, 0, 1, 1).data];
    }, { x, y });
  // Frames with all members, which the fixture's do not have.
  const tellMore = () => page.route(ofGraph, async (route) => {
    const answer = await (await page.context().request.get(route.request().url().replace("columns-binary", "columns"))).json();
    const { strings, frames } = answer.columns;
    const index = (value) => strings.push(value) - 1;
    const f = frames.name.findIndex((name) => strings[name] === "price_with_tax(Item const&)");
    const column = (value, none = 0) => frames.name.map((_, i) => (i === f ? value : none));
    const none = strings.indexOf("");
    frames.full_name = column(index("double price_with_tax<Shop::Net, 19>(Item const&, Rates const&)"), none);
    frames.build_id = column(index("5f0c1e2a9b"), none);
    frames.file = column(index("src/cart/price.cc"), none);
    frames.line = column(87);
    frames.inlined = column(1);
    await route.fulfill({ body: binary(answer), contentType: "application/x-flamed-columns" });
  });

  it("describes the frame under the pointer", async () => {
    await show("");
    const { x, y } = await place(CART);
    await page.mouse.move(x, y);
    assert.equal(await text(page, ".frame-tooltip .name"), CART);
    const tooltip = await text(page, ".frame-tooltip");
    assert.match(tooltip, /6,600 samples · 66.0 s63.0 %/);
    assert.match(tooltip, /Self300 samples · 3.00 s2.87 %/);
    await page.mouse.move(5, 5);
    assert.ok(await page.isHidden(".frame-tooltip"));
  });

  it("shows why a frame has no name", async () => {
    await show("");
    await page.mouse.move(...Object.values(await place("[libvendor.so+0x1a20]")).slice(0, 2));
    assert.match(await text(page, ".frame-tooltip .reason"), /the file has no symbols/);
    await clickOn("[libvendor.so+0x1a20]");
    assert.match(await text(page, "#details"), /No namethe file has no symbols/);
  });

  it("zooms into a clicked frame; breadcrumbs, Escape and back lead out again", async () => {
    await show("");
    await clickOn(PARSE);
    assert.deepEqual(await zoom(), ["_start", "main", "Server::run()", "Server::handle(Request const&)", PARSE]);
    const whole = await place(PARSE);
    assert.ok(whole.width > 800, `${whole.width} pixels`);
    assert.match(await text(page, "#crumbs"), /^Reset zoom.*json::parse\(std::string_view\)$/);
    await page.click("#crumbs li:nth-last-child(2) button");
    assert.equal((await zoom()).length, 4);
    await page.focus("#graph");
    await page.keyboard.press("Escape");
    assert.deepEqual(await zoom(), []);
    await page.goBack();
    assert.equal((await zoom()).length, 4);
    await page.goBack();
    await settled();
    assert.equal(Math.round((await place(PARSE)).width), Math.round(whole.width));
  });

  it("shows the same place when its address is opened", async () => {
    await show("");
    await clickOn(PARSE);
    const frames = await mirror(page);
    await page.reload();
    await loaded(page);
    assert.deepEqual(await mirror(page), frames);
    await show("#zoom=_start&zoom=gone&zoom=deeper");
    assert.ok((await place("_start")).width > 800);
  });

  it("has its root at the bottom in a flame graph, and at the top in an icicle graph", async () => {
    await show("&view=flame");
    const main = await place("main");
    assert.ok(main.top > (await place(CART)).top);
    const box = await page.$eval("#graph", (graph) => graph.getBoundingClientRect().toJSON());
    assert.ok(box.bottom - (await place("checkout-api (4242)")).top < 24);
    await page.focus("#graph");
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp"]) await page.keyboard.press(key);
    assert.match(await announced(), /^main, /);
    await page.keyboard.press("ArrowDown");
    assert.match(await announced(), /^_start, /);
    await page.click('#modes [data-mode="icicle"]');
    await page.waitForFunction((cart) => {
      const top = (name) => [...document.querySelectorAll("#graph .flame-item")].find(({ dataset }) => dataset.name === name)?.getBoundingClientRect().top;
      return top("main") < top(cart);
    }, CART);
  });

  it("can be used with the keyboard only", async () => {
    await show("");
    await page.focus("#graph");
    for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowDown");
    assert.match(await announced(), /^Cart::total\(\) const, 63.0 %, 6,600 samples$/);
    assert.match(await text(page, "#details"), /^Cart::total\(\) const/);
    await page.keyboard.press("ArrowRight");
    assert.doesNotMatch(await announced(), /^Cart/);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    assert.equal((await zoom()).at(-1), CART);
    await page.keyboard.press("Backspace");
    assert.equal((await zoom()).at(-1), "Server::handle(Request const&)");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+F10");
    assert.match(await text(page, ".frame-menu"), /Zoom in/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("c");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /^C/);
    await page.keyboard.press("Escape");
    assert.equal(await page.$(".frame-menu"), null);
    assert.equal(await page.evaluate(() => document.activeElement.id), "graph");
  });

  it("is a tree for users who can't see it", async () => {
    await show("");
    assert.equal(await page.getAttribute("#graph", "role"), "tree");
    const items = await page.$$eval("#graph [role=treeitem]", (found) => found.map((item) => [item.getAttribute("aria-level"), item.ariaLabel]));
    assert.deepEqual(items[0], ["1", "checkout-api (4242), 100.0 %, 10,470 samples"]);
    assert.ok(items.some(([level, name]) => level === "6" && name === "Cart::total() const, 63.0 %, 6,600 samples"));
    assert.ok(items.length <= 210);
    await page.focus("#graph");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const active = await page.getAttribute("#graph", "aria-activedescendant");
    assert.match(await page.getAttribute(`[id="${active}"]`, "aria-label"), /^_start/);
    assert.equal(await page.getAttribute(`[id="${active}"]`, "aria-selected"), "true");
  });

  it("keeps the focus at its frame when another answer or direction is drawn", async () => {
    await show("");
    await page.focus("#graph");
    for (let i = 0; i < 6; i++) await page.keyboard.press("ArrowDown");
    const active = async () => page.getAttribute(`[id="${await page.getAttribute("#graph", "aria-activedescendant")}"]`, "aria-label");
    assert.match(await active(), /^Cart::total\(\) const, 63.0 %/);
    await page.keyboard.press("g");
    assert.match(await active(), /^Cart::total\(\) const, 63.0 %/);
    await answered(page, () => page.keyboard.press("["));
    assert.match(await active(), /^Cart::total\(\) const, /);
    assert.match(await text(page, "#details"), /^Cart::total/);
    await page.keyboard.press("ArrowDown");
    assert.match(await announced(), /^Server::handle/);
  });

  it("reacts to touch: the first one describes, the second zooms, a long one opens the menu", async () => {
    await show("");
    const touch = async (name, ms) => {
      const { x, y } = await place(name);
      await page.$eval(".flame-canvas", async (canvas, { at, wait }) => {
        const how = { clientX: at.x, clientY: at.y, bubbles: true, pointerType: "touch" };
        canvas.dispatchEvent(new PointerEvent("pointerdown", how));
        if (wait > 0) await new Promise((resolve) => {
          new MutationObserver(resolve).observe(document.body, { childList: true, subtree: true });
        });
        canvas.dispatchEvent(new PointerEvent("pointerup", how));
        canvas.dispatchEvent(new MouseEvent("click", how));
      }, { at: { x, y }, wait: ms });
      await settled();
    };
    await touch(PARSE, 0);
    assert.match(await text(page, "#details"), /^json::parse/);
    assert.deepEqual(await zoom(), []);
    await touch(PARSE, 0);
    assert.equal((await zoom()).at(-1), PARSE);
    await touch("json::Parser::object()", 600);
    assert.match(await text(page, ".frame-menu-head"), /^json::Parser::object/);
    assert.equal((await zoom()).at(-1), PARSE);
  });

  it("counts each sample once in a search's share", async () => {
    await show("");
    await page.keyboard.press("/");
    await page.keyboard.type("JSON");
    const matched = (share) => page.waitForFunction((wanted) => document.querySelector("#search-result").textContent === wanted, `${share} matched`);
    // 1,800 of 10,470, although up to three frames of a stack match.
    await matched("17.2 %");
    await page.fill("#search", "/^(ksys_write|vfs_read)$/");
    await matched("13.4 %");
    await page.fill("#search", "nowhere");
    await matched("0 %");
    await page.fill("#search", "/(/");
    await page.waitForFunction(() => /Not searched: .*regular expression/i.test(document.querySelector("#search-result").textContent));
    assert.deepEqual(page.troubles, []);
  });

  it("is not blocked by an expression that would never end", async () => {
    // "(x+x+)+y" on ten thousand x makes backtracking take practically forever.
    await open(page, `${daemon.url}/?pid=778`);
    await page.fill("#search", "/(x+x+)+y/");
    await page.focus("#graph");
    await page.keyboard.press("ArrowDown");
    assert.notEqual(await announced(), "");
    await page.waitForFunction(() => /takes too long/.test(document.querySelector("#search-result").textContent));
    await page.fill("#search", "/^main$/");
    await page.waitForFunction(() => document.querySelector("#search-result").textContent === "100.0 % matched");
  });

  it("paints matches in a colour of their own, and the rest faintly", async () => {
    await show("");
    const { x, y } = await place(PARSE);
    const at = [x + 1, y - 7];
    const before = await pixel(...at);
    await page.fill("#search", "json::parse");
    await page.waitForFunction(() => /matched/.test(document.querySelector("#search-result").textContent));
    await settled();
    assert.notDeepEqual(await pixel(...at), before);
    assert.deepEqual((await pixel(...at)).slice(0, 3), [0xec, 0x7f, 0xdd]);
  });

  it("filters by a frame: focus, ignore, hide", async () => {
    await show("");
    await answered(page, () => menu(PARSE, "Focus"));
    assert.equal((await query()).focus, "^json::parse\\(std::string_view\\)$");
    assert.equal((await mirror(page))[0].value, 1800);
    await page.goBack();
    await loaded(page, 3);
    await answered(page, () => menu(PARSE, "Ignore"));
    assert.equal((await mirror(page))[0].value, 8670);
    await answered(page, () => menu(CART, "Ignore"));
    assert.equal((await query()).ignore, "^json::parse\\(std::string_view\\)$|^Cart::total\\(\\) const$");
    assert.equal((await mirror(page))[0].value, 2070);
    await answered(page, () => menu("write", "Hide"));
    const frames = await mirror(page);
    assert.equal(frames.find(({ name }) => name === "write"), undefined);
    assert.equal(frames.find(({ name }) => name === "entry_SYSCALL_64").depth, 5);
    assert.deepEqual(page.troubles, []);
  });

  it("copies a name and a stack", async () => {
    await show("");
    await menu(CART, "Copy name");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), CART);
    await menu(CART, "Copy stack");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ["_start", "main", "Server::run()", "Server::handle(Request const&)", CART].join("\n"));
  });

  it("folds recursion into one frame", async () => {
    await open(page, `${daemon.url}/?pid=5150`);
    assert.ok((await page.$eval("#graph", (graph) => graph.scrollHeight)) > 300 * 20);
    await menu("main", "Fold recursion");
    assert.equal((await query()).collapse, "1");
    const frames = await mirror(page);
    assert.deepEqual(frames.map(({ name, value }) => [name, value]).slice(1), [["main", 500], ["even(int)", 500], ["odd(int)", 400]]);
    await page.uncheck("#collapse");
    assert.equal((await query()).collapse, undefined);
  });

  it("folds a module into one frame, and unfolds it", async () => {
    await show("#zoom=_start&zoom=main&zoom=Server%3A%3Arun()&zoom=Server%3A%3Ahandle(Request%20const%26)&zoom=write&zoom=entry_SYSCALL_64&zoom=ksys_write");
    await menu("vfs_write", "Fold [kernel]");
    assert.deepEqual(await zoom("fold"), ["[kernel]"]);
    assert.equal((await zoom()).at(-1), "[kernel]");
    await page.click("#crumbs .first button");
    await settled();
    const kernel = (await mirror(page)).filter(({ kind }) => kind === "kernel" || kind === "folded");
    assert.deepEqual(kernel.map(({ name, kind, value }) => [name, kind, value]), [["[kernel]", "folded", 500], ["[kernel]", "folded", 900]]);
    assert.match(await text(page, "#legend"), /Module in one/);
    await clickOn("[kernel]", "#graph", { button: "right" });
    assert.doesNotMatch(await text(page, ".frame-menu"), /Focus/);
    await page.keyboard.press("Escape");
    await page.reload();
    await loaded(page);
    assert.ok((await mirror(page)).some(({ kind }) => kind === "folded"));
    await page.click('#modes [data-mode="table"]');
    assert.match(await text(page, '.rows [data-name="[kernel]"]'), /13.4 %1,400/);
    await page.click('#modes [data-mode="icicle"]');
    await inspect(page, "folded");
    await menu("[kernel]", "Unfold [kernel]");
    assert.deepEqual(await zoom("fold"), []);
    assert.ok((await mirror(page)).some(({ name }) => name === "vfs_write"));
    await page.goBack();
    await page.click('#chips [aria-label="Remove In one frame [kernel]"]');
    assert.deepEqual(await zoom("fold"), []);
  });

  it("goes from the whole machine to a program or a process by its frame", async () => {
    await open(page, daemon.url);
    await answered(page, () => menu("/usr/bin/java", "Only this program"));
    assert.equal((await query()).exe, "/usr/bin/java");
    await open(page, `${daemon.url}/?by=pid`);
    await answered(page, () => menu("java (31337)", "Only this process"));
    assert.equal((await query()).pid, "31337");
  });

  it("follows stacks of hundreds of frames by scrolling", async () => {
    await open(page, `${daemon.url}/?pid=5150`);
    await page.$eval("#graph", (graph) => (graph.scrollTop = 3000));
    await settled();
    assert.ok((await painted(page)).share > 0.5);
    await page.focus("#graph");
    for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowDown");
    assert.equal(await page.$eval("#graph", (graph) => graph.scrollTop) < 100, true);
  });

  it("shows all callers and callees of a function", async () => {
    await show("");
    await menu("ksys_write", "Callers and callees");
    assert.equal((await query()).view, "sandwich");
    assert.equal(await text(page, "#middle"), "ksys_write");
    const callers = await page.$$eval("#graph-callers .flame-item", (items) => items.map(({ dataset }) => [dataset.name, dataset.value]));
    assert.deepEqual(callers.slice(0, 3), [["ksys_write", "900"], ["entry_SYSCALL_64", "900"], ["write", "900"]]);
    assert.ok((await place("write", "#graph-callers")).top < (await place("ksys_write", "#graph-callers")).top);
    assert.ok((await place("vfs_write", "#graph-callees")).top > (await place("ksys_write", "#graph-callees")).top);
    await inspect(page, "sandwich");
    await page.click(`.table [data-name="entry_SYSCALL_64"]`);
    assert.equal(await text(page, "#middle"), "entry_SYSCALL_64");
    const both = await page.$$eval("#graph-callers .flame-item", (items) => items.map(({ dataset }) => dataset.name));
    assert.ok(both.includes("read") && both.includes("write"));
    await menu("write", "Callers and callees", "#graph-callers");
    assert.equal(await text(page, "#middle"), "write");
  });

  it("keeps in its address where a sandwich's halves are zoomed to", async () => {
    await show("&view=sandwich#frame=ksys_write");
    const items = (half) => page.$$eval(`#graph-${half} .flame-item`, (all) => all.map(({ dataset }) => dataset.name));
    const inFull = await items("callers");
    await menu("write", "Zoom in", "#graph-callers");
    await menu("vfs_write", "Zoom in", "#graph-callees");
    const place = { callers: await zoom("callers"), callees: await zoom("callees") };
    assert.equal(place.callers.at(-1), "write");
    assert.equal(place.callees.at(-1), "vfs_write");
    const zoomed = await items("callers");
    await page.reload();
    await loaded(page);
    await settled();
    assert.deepEqual({ callers: await zoom("callers"), callees: await zoom("callees") }, place);
    assert.deepEqual(await items("callers"), zoomed);
    await page.goBack();
    await page.goBack();
    await settled();
    assert.deepEqual(await zoom("callers"), []);
    assert.deepEqual(await items("callers"), inFull);
    await menu("write", "Zoom in", "#graph-callers");
    await page.click(`.table [data-name="entry_SYSCALL_64"]`);
    assert.deepEqual(await zoom("callers"), []);
  });

  it("turns the graph around: functions that ran, and below each what called it", async () => {
    await show("&search=write");
    await page.click('#modes [data-mode="bottom-up"]');
    await settled();
    assert.equal((await query()).view, "bottom-up");
    assert.equal((await query()).search, "write");
    const first = (await mirror(page)).filter(({ depth }) => depth === 1);
    assert.deepEqual(first.slice(0, 2).map(({ name, value }) => [name, value]), [["price_with_tax(Item const&)", 4200], ["std::map<std::string, Rate>::find(std::string const&)", 2100]]);
    assert.equal((await mirror(page))[0].value, 10470);
    const { x, y } = await place("price_with_tax(Item const&)");
    await page.mouse.move(x, y);
    assert.match(await text(page, ".frame-tooltip"), /Samples4,200 samples · 42.0 s40.1 %/);
    assert.doesNotMatch(await text(page, ".frame-tooltip"), /Self/);
    await clickOn("std::map<std::string, Rate>::find(std::string const&)");
    assert.deepEqual(await zoom("up"), ["std::map<std::string, Rate>::find(std::string const&)"]);
    assert.match(await text(page, "#search-result"), /^0 % matched$/);
    await clickOn("Cart::total() const");
    // The tree for a narrow place has more branches: the focus is at the same frame of that.
    assert.match(await page.$eval('#graph [aria-selected="true"]', (item) => item.ariaLabel), /^Cart::total\(\) const, 20.1 %/);
    assert.match(await text(page, "#crumbs"), /^Reset zoomstd::map.*price_with_tax\(Item const&\)Cart::total\(\) const$/);
    const items = await mirror(page);
    await page.reload();
    await loaded(page);
    assert.deepEqual(await mirror(page), items);
    await page.focus("#graph");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await announced(), /^Server::handle\(Request const&\), 20.1 %, 2,100 samples$/);
    assert.deepEqual(page.troubles, []);
    await page.keyboard.press("Escape");
    assert.deepEqual(await zoom("up"), []);
    assert.match(await text(page, "#search-result"), /^8.60 % matched$/);
  });

  it("turns the zoomed part around, and keeps both places", async () => {
    await show("");
    await clickOn(PARSE);
    await page.click('#modes [data-mode="bottom-up"]');
    await settled();
    assert.equal((await zoom()).at(-1), PARSE);
    assert.deepEqual((await mirror(page)).filter(({ depth }) => depth < 2).map(({ name, value }) => [name, value]),
      [["checkout-api (4242)", 1800], ["json::Parser::string()", 1300], ["json::Parser::object()", 500]]);
    await clickOn("json::Parser::string()");
    await page.click('#modes [data-mode="icicle"]');
    await settled();
    assert.ok((await place(PARSE)).width > 800);
    await page.click('#modes [data-mode="bottom-up"]');
    assert.deepEqual(await zoom("up"), ["json::Parser::string()"]);
    await page.click("#crumbs .first button");
    assert.deepEqual([await zoom(), await zoom("up")], [[], []]);
    assert.match(await text(page, "#crumbs"), /^All 10,470 samples$/);
  });

  it("offers a program by its frame, wherever that is", async () => {
    await open(page, `${daemon.url}/?view=bottom-up`);
    await menu("com.shop.Stock.scan", "Zoom in");
    await clickOn("/usr/bin/java", "#graph", { button: "right" });
    assert.match(await text(page, ".frame-menu"), /Only this program/);
    await page.keyboard.press("Escape");
    await clickOn("com.shop.Stock.scan", "#graph", { button: "right" });
    assert.doesNotMatch(await text(page, ".frame-menu"), /Only this program/);
    await page.click('.frame-menu button:has-text("Copy stack")');
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "com.shop.Stock.scan");
    await menu("start_thread", "Copy stack");
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), ["start_thread", "JavaThread::run()", "com.shop.Stock.reserve", "com.shop.Stock.scan"].join("\n"));
  });

  it("lists functions, sorted by any column and filtered by the search", async () => {
    await show("&view=table");
    const names = () => page.$$eval(".rows .function-row", (rows) => rows.sort((a, b) => a.dataset.index - b.dataset.index).map(({ dataset }) => dataset.name));
    assert.deepEqual((await names()).slice(0, 2), ["price_with_tax(Item const&)", "std::map<std::string, Rate>::find(std::string const&)"]);
    assert.match(await text(page, '.rows [data-index="0"]'), /40.1 %4,200.*60.2 %6,300/);
    await page.click('.head button:has-text("Total")');
    assert.equal(await page.getAttribute('.head [aria-sort="descending"]', "class"), "cell number");
    assert.equal((await query()).sort, "-total");
    assert.equal((await names())[0], "Server::run()");
    await page.click('.head button:has-text("Function")');
    assert.equal((await names())[0], "Cart::total() const");
    await page.fill("#search", "json");
    await page.waitForFunction(() => document.querySelectorAll(".rows .function-row").length === 3);
    assert.match(await text(page, ".table .sum"), /^3 functions of/);
    await page.focus(".grid");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.equal(await text(page, ".function-row.selected bdi"), "json::Parser::string()");
    await page.keyboard.press("Shift+F10");
    assert.match(await text(page, ".frame-menu"), /Focus.*Copy name/);
    await page.keyboard.press("Escape");
    await page.focus(".grid");
    await page.keyboard.press("Enter");
    assert.equal(await text(page, "#middle"), "json::Parser::string()");
  });

  it("lists modules or source files in place of functions", async () => {
    await show("&view=table");
    await page.selectOption("#rows", "module");
    await settled();
    assert.equal((await query()).rows, "module");
    const rows = () => page.$$eval(".rows .function-row", (all) => all.sort((a, b) => a.dataset.index - b.dataset.index).map((row) => row.textContent));
    // Each stack counts once for a module's total, however many of its functions are in it.
    assert.equal((await rows())[0], "victim50 functions82.3 %8,620100.0 %10,470");
    const kernel = (await rows()).find((row) => row.startsWith("[kernel]"));
    assert.match(kernel, /^\[kernel\]\d functions13.4 %1,40013.4 %1,400$/);
    await page.fill("#search", "vfs_read");
    await page.waitForFunction(() => document.querySelectorAll(".rows .function-row").length === 1);
    assert.match(await text(page, ".table .sum"), /^1 module of/);
    await page.fill("#search", "");
    await page.waitForFunction(() => document.querySelectorAll(".rows .function-row").length > 1);
    await inspect(page, "table-modules");
    await page.click('.rows [data-name="[kernel]"]');
    assert.deepEqual(await zoom("part"), ["[kernel]"]);
    await page.focus(".grid");
    await page.keyboard.press("Enter");
    await settled();
    assert.equal((await query()).beside, "1");
    assert.match(await text(page, "#legend"), /Chosen/);
    await page.selectOption("#rows", "file");
    await settled();
    assert.deepEqual(await rows(), [
      "source file not known62 functions47.5 %4,970100.0 %10,470", "/srv/checkout/cart.cc1 function40.1 %4,20060.2 %6,300", "/srv/checkout/json.cc1 function12.4 %1,30012.4 %1,300",
    ]);
  });

  it("has the table beside the graph, and marks a chosen row's frames in it", async () => {
    await show("&beside=1&sort=-total");
    const { x, y } = await place("ksys_write");
    const before = await pixel(x + 1, y - 7);
    await page.click('.rows [data-name="ksys_write"]');
    await settled();
    assert.deepEqual(await zoom("frame"), ["ksys_write"]);
    assert.notDeepEqual(await pixel(x + 1, y - 7), before);
    assert.deepEqual((await pixel(x + 1, y - 7)).slice(0, 3), [0xec, 0x7f, 0xdd]);
    assert.match(await text(page, "#details"), /^ksys_write/);
    assert.match(await announced(), /^ksys_write, 8.60 %/);
    await page.keyboard.press("g");
    await page.keyboard.press("g");
    await settled();
    assert.equal((await query()).view, "bottom-up");
    assert.match(await text(page, "#details"), /^ksys_write/);
    await inspect(page, "beside");
    await page.keyboard.press("b");
    await settled();
    assert.equal(await page.$(".grid"), null);
    assert.equal((await query()).beside, undefined);
  });

  it("compares modules by their own time and their total", async () => {
    await show("&from=now-10m&to=now-5m&base_from=now-5m&base_to=now&view=table&rows=module");
    const heads = await page.$$eval(".head [role=columnheader]", (all) => all.map((head) => head.textContent.replace(/ [↓↑]/, "")));
    assert.deepEqual(heads, ["Module", "Self before", "After", "Change of self", "Total before", "After", "Change of total"]);
    assert.match(await text(page, '.rows [data-name="[kernel]"]'), /^\[kernel\].*%.*[+−±]/);
    await inspect(page, "diff-table-modules");
  });

  it("has only the visible rows of a long table", async () => {
    await open(page, `${daemon.url}/?view=table`);
    const count = Number((await page.getAttribute(".grid", "aria-rowcount")) ?? 0) - 1;
    assert.ok(count > 60);
    assert.ok((await page.$$(".rows .function-row")).length < count);
    await page.$eval(".grid", (grid) => (grid.scrollTop = grid.scrollHeight));
    await page.waitForSelector(`.rows [data-index="${count - 1}"]`);
    await inspect(page, "table");
  });

  it("shows changes, and which of them are significant", async () => {
    await show("&from=now-10m&base_pid=31337");
    const { x, y } = await place("main");
    const [red, , blue] = await pixel(x + 1, y - 7);
    assert.ok(red > blue + 40, "more is red");
    const java = await place("start_thread");
    const less = await pixel(java.x + 1, java.y - 7);
    assert.ok(less[2] > less[0] + 40, "less is blue");
    await page.mouse.move(x, y);
    assert.match(await text(page, ".frame-tooltip"), /Before0 samples.*After.*Change\+9\d\.\d points/);
    await inspect(page, "diff");
    await page.selectOption("#palette", "blind");
    await settled();
    assert.equal((await query()).palette, "blind");
    const other = await pixel(x + 1, y - 7);
    assert.ok(other[1] > 120, "orange, not red");
    await inspect(page, "diff-blind");
    await page.click('#modes [data-mode="table"]');
    assert.match(await text(page, '.rows [data-index="0"]'), /significant/);
    assert.match(await text(page, '.rows [data-index="0"]'), /[+−]\d/);
    await inspect(page, "diff-table");
  });

  it("compares totals beside the functions' own time, by shares or by CPU time", async () => {
    await show("&from=now-10m&to=now-5m&base_from=now-5m&base_to=now&view=table");
    const heads = await page.$$eval(".head [role=columnheader]", (all) => all.map((head) => head.textContent.replace(/ [↓↑]/, "")));
    assert.deepEqual(heads, ["Function", "Self before", "After", "Change of self", "Total before", "After", "Change of total", "Chance"]);
    const cells = (name) => page.$eval(`.rows [data-name="${name}"]`, (row) => [...row.querySelectorAll(".number, .change")].map((cell) => cell.textContent));
    // main has nearly no time of its own, and calls everything.
    await page.click('.head button:has-text("Change of total")');
    assert.equal((await query()).sort, "-change-total");
    const changes = await page.$$eval(".rows .function-row", (rows) => rows.map((row) => Math.abs(Number(row.querySelectorAll(".change span")[1].textContent.replace(/[+−±<]/, "")))));
    assert.ok(changes[0] > 0 && changes.every((change, i) => i === 0 || change <= changes[i - 1]), changes.join());
    await page.click('.head button:has-text("After") >> nth=1');
    const [, , , before, after, change] = await cells("main");
    assert.ok(parseFloat(before) > 99, before);
    assert.match(change, /^[+−±]/);
    assert.ok(Math.abs(parseFloat(after) - parseFloat(before) - Number(change.replace("−", "-").replace("±", ""))) < 0.2);
    await answered(page, () => page.click('#normalise button:has-text("CPU time")'));
    assert.equal((await query()).normalise, "time");
    // Shares of a CPU, not of all samples.
    assert.equal((await query()).sort, "-total");
    const [, , , busy] = await cells("main");
    assert.ok(parseFloat(busy) < 50, busy);
    assert.equal(await page.getAttribute('#normalise button:has-text("CPU time")', "aria-pressed"), "true");
    await inspect(page, "diff-totals");
  });

  it("marks nothing as significant where nothing has changed", async () => {
    await show("&from=now-5m&base_pid=4242&base_from=now-5m&view=table");
    assert.equal((await page.$$(".mark b")).length, 0);
  });

  it("colours by kind, module or function, and has a legend", async () => {
    await tellMore();
    await show("");
    const legend = () => page.$$eval("#legend li", (items) => items.map((item) => item.textContent));
    assert.deepEqual(await legend(), ["Program", "Inlined", "Kernel", "vdso", "Unnamed", "Cut off", "Process"]);
    const { x, y } = await place(CART);
    const colours = [await pixel(x + 1, y - 7)];
    for (const how of ["module", "name"]) {
      await page.selectOption("#colour", how);
      await settled();
      colours.push(await pixel(x + 1, y - 7));
      if (how === "module") assert.ok((await legend()).includes("[kernel]"));
    }
    assert.equal(new Set(colours.map(String)).size, 3);
    assert.equal((await query()).colour, "name");
  });

  it("shows all details of a frame", async () => {
    await tellMore();
    await show("");
    await clickOn("price_with_tax(Item const&)");
    const details = await text(page, "#details");
    assert.match(details, /^double price_with_tax<Shop::Net, 19>\(Item const&, Rates const&\)Inlined/);
    for (const known of [/Modulevictim/, /Build-id5f0c1e2a9b/, /Sourcesrc\/cart\/price.cc:87/, /Total6,300 samples/, /Self4,200 samples/]) assert.match(details, known);
  });

  it("fetches left-out functions when the user goes there", async () => {
    let fetched = "";
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      if (url.searchParams.has("root")) fetched = url.search;
      else url.searchParams.set("max_nodes", "6");
      await route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("");
    const frames = await mirror(page);
    assert.equal(frames.find(({ name }) => name === "tcp_sendmsg"), undefined);
    await clickOn("Server::handle(Request const&)");
    await page.waitForFunction(() => document.querySelector('.flame-item[data-name="tcp_sendmsg"]') !== null);
    assert.match(fetched, /from=\d+&to=\d+&.*root=_start&root=main&root=Server/);
    const all = await mirror(page);
    assert.equal(all[0].value, 10470);
    assert.equal(all.find(({ name }) => name === "tcp_sendmsg").value, 900);
    assert.deepEqual(page.troubles, []);
  });

  it("fetches the largest frames of a live window, and the rest when it is searched", async () => {
    const asked = [];
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      asked.push(url.searchParams.get("max_nodes"));
      if (url.searchParams.has("max_nodes")) url.searchParams.set("max_nodes", "6");
      await route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("");
    await page.waitForTimeout(1500);
    assert.deepEqual(asked, ["25000"]);
    await page.fill("#search", "tcp_sendmsg");
    await page.waitForFunction(() => document.querySelector("#search-result").textContent === "8.60 % matched");
    assert.deepEqual(asked, ["25000", null]);
    assert.deepEqual(page.troubles, []);
  });

  it("fetches the largest frames of a past window, and the rest once they are painted", async () => {
    const asked = [];
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      asked.push(url.searchParams.get("max_nodes"));
      // As if the fixture had more frames than a screen can show.
      if (url.searchParams.has("max_nodes")) url.searchParams.set("max_nodes", "6");
      await route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("&from=now-10m&to=now-1s");
    const first = await mirror(page);
    assert.equal(first.find(({ name }) => name === "tcp_sendmsg"), undefined);
    await page.waitForFunction(() => document.querySelector('.flame-item[data-name="tcp_sendmsg"]') !== null);
    const all = await mirror(page);
    assert.equal(all[0].value, first[0].value);
    assert.deepEqual(asked, ["25000", null]);
    assert.deepEqual(page.troubles, []);
  });

  it("says that search and table count only the largest frames while the rest can't be fetched", async () => {
    let refused = 0;
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      if (url.searchParams.has("max_nodes")) url.searchParams.set("max_nodes", "6");
      else if (refused++ === 0) {
        return route.fulfill({ status: 422, contentType: "application/problem+json", body: JSON.stringify({ status: 422, title: "Too much", detail: "It takes too long." }) });
      }
      return route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("&from=now-10m&to=now-1s&view=table");
    await page.waitForSelector(".fetching button");
    assert.equal(await text(page, ".fetching"), "The rest of this window was not fetched: It takes too long. Search and table count only the largest frames.Try again");
    const functions = () => page.$eval(".grid", (grid) => Number(grid.getAttribute("aria-rowcount")));
    const largest = await functions();
    await inspect(page, "rest-not-fetched");
    await page.click(".fetching button");
    await page.waitForFunction((before) => Number(document.querySelector(".grid").getAttribute("aria-rowcount")) > before, largest);
    assert.equal(await page.$(".fetching"), null);
    assert.equal(refused, 2);
    assert.deepEqual(page.troubles, []);
  });

  it("requests the whole window again if its samples changed", async () => {
    const asked = [];
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      const isFirst = url.searchParams.has("max_nodes");
      asked.push(isFirst ? "first" : "rest");
      if (isFirst) url.searchParams.set("max_nodes", "6");
      else if (asked.length === 2) url.searchParams.set("pid", "777");
      await route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("&from=now-10m&to=now-1s");
    await page.waitForSelector(".fetching button");
    assert.match(await text(page, ".fetching"), /^The stored samples of this window have changed .* only the largest frames\.Ask again$/);
    await page.click(".fetching button");
    await page.waitForFunction(() => document.querySelector('.flame-item[data-name="tcp_sendmsg"]') !== null);
    assert.equal(await page.$(".fetching"), null);
    assert.deepEqual(asked, ["first", "rest", "first", "rest"]);
    assert.deepEqual(page.troubles, []);
  });

  it("logs unexpected errors to the console while it fetches the rest", async () => {
    await page.route(ofGraph, async (route) => {
      const url = new URL(route.request().url());
      if (!url.searchParams.has("max_nodes")) return route.fulfill({ contentType: "application/octet-stream", body: "no such columns" });
      url.searchParams.set("max_nodes", "6");
      return route.fulfill({ response: await page.context().request.get(url.href) });
    });
    await show("&from=now-10m&to=now-1s");
    await page.waitForSelector(".fetching button");
    assert.match(await text(page, ".fetching"), /^The rest of this window was not fetched: the answer is not in columns\. .*Try again$/);
    assert.equal(page.troubles.length, 1);
    assert.match(page.troubles[0], /^console: Error: the answer is not in columns/);
  });

  it("saves itself as a self-contained vector picture without foreign markup", async () => {
    await open(page, `${daemon.url}/?pid=777&search=script`);
    await page.waitForFunction(() => /matched/.test(document.querySelector("#search-result").textContent));
    await page.click("#export-button");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click('#export button:has-text("Vector picture")')]);
    assert.match(download.suggestedFilename(), /\.svg$/);
    const picture = await readFile(await download.path(), "utf-8");
    // Not on the page itself, whose policy forbids inline styles.
    const elsewhere = await browser.context.newPage();
    const { problem, texts, elements } = await elsewhere.evaluate((markup) => {
      const made = new DOMParser().parseFromString(markup, "image/svg+xml");
      return {
        problem: made.querySelector("parsererror")?.textContent ?? "",
        texts: [...made.querySelectorAll("text")].map((element) => element.textContent),
        elements: [...new Set([...made.querySelectorAll("*")].map((element) => element.localName))].sort(),
      };
    }, picture);
    await elsewhere.close();
    assert.equal(problem, "");
    assert.deepEqual(elements, ["g", "rect", "style", "svg", "text", "title"]);
    assert.ok(texts.includes("<script>alert(1)</script>"));
    assert.equal(texts[0], "<img onerror=x> (pid 777)");
    assert.match(texts[1], /700 samples at 100 Hz/);
    assert.match(texts[2], /100.0 % match script/);
    assert.doesNotMatch(picture, /(href|src)=/);
    assert.deepEqual(page.troubles, []);
  });

  it("saves itself as a bitmap", async () => {
    await show("&view=sandwich");
    await page.click("#export-button");
    const [download] = await Promise.all([page.waitForEvent("download"), page.click('#export button:has-text("Bitmap")')]);
    const picture = await readFile(await download.path());
    assert.equal(picture.toString("latin1", 1, 4), "PNG");
    assert.equal(picture.readUInt32BE(16), 2400);
    assert.ok(picture.readUInt32BE(20) > 400);
  });

  it("is sharp on screens of high density, and follows the window's size", async () => {
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setDeviceMetricsOverride", { width: 1000, height: 700, deviceScaleFactor: 2, mobile: false });
    await show("");
    const size = () => page.$eval(".flame-canvas", (canvas) => ({ canvas: canvas.width, box: canvas.parentElement.clientWidth }));
    const before = await size();
    assert.equal(before.canvas, 2 * before.box);
    await session.send("Emulation.setDeviceMetricsOverride", { width: 1400, height: 700, deviceScaleFactor: 1, mobile: false });
    // The box's size and the density change one after the other, and the picture in the next frame.
    await page.waitForFunction((box) => {
      const canvas = document.querySelector(".flame-canvas");
      return canvas.parentElement.clientWidth > box && canvas.width === canvas.parentElement.clientWidth;
    }, before.box);
  });

  it("follows a change of the theme", async () => {
    await show("");
    const { x, y } = await place(CART);
    const light = await pixel(x + 1, y - 7);
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
    await page.waitForSelector('html[data-theme="dark"]'); // the browser reports it some frames later
    await settled();
    assert.notDeepEqual(await pixel(x + 1, y - 7), light);
  });

  it("is readable in both themes, on a phone and on a large screen", async () => {
    await show("");
    await inspect(page, "light");
    await show("&view=flame");
    await inspect(page, "flame");
    for (const [name, options, more] of [
      ["dark", { colorScheme: "dark" }, "&search=json"],
      ["dark-diff", { colorScheme: "dark" }, "&from=now-10m&base_pid=31337"],
      ["narrow", { width: 360, height: 780 }, ""],
      ["narrow-sandwich", { width: 360, height: 780 }, "&view=sandwich"],
      ["narrow-table", { width: 360, height: 780 }, "&view=table"],
      ["large", { width: 3840, height: 2160 }, ""],
    ]) {
      const other = await browser.page(daemon.url, { ...options, reducedMotion: "reduce" });
      await open(other, `${daemon.url}/?pid=4242${more}`);
      assert.ok((await other.evaluate(() => document.documentElement.scrollWidth)) <= (options.width ?? 1280), name);
      await inspect(other, name, { fullPage: name.startsWith("narrow") });
      await other.close();
    }
  });
});
