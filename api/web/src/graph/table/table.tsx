// SPDX-License-Identifier: Apache-2.0
// The functions of the shown part, or what they are in, as a table that is filtered by the search. Only visible rows are
// in the document.
import { computed, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { about, isDiff as comparesSides, profile } from "../../questions";
import { look, view } from "../../state";
import { amount, isTimed, worth } from "../../measure";
import { count, printable, seconds } from "../../text";
import { openNameMenu } from "../shown/actions";
import type { RowsBy } from "../shown/groups";
import { changeText, share } from "../drawing/labels";
import { chooseRow, chosenRow, found, functions, groups, isBeside, mode, model, showSandwich, zoomed } from "../shown/shown";
import { type SortKey, type TableRow, sortRows, tableRows } from "./table_rows";

const ROW = 28;
const HEAD = 30;
const SPARE = 6; // rows beyond each edge

const KEYS: readonly SortKey[] = ["name", "self", "total", "change", "change-total"];

const sorting = computed<{ key: SortKey; isDescending: boolean }>(() => {
  const { sort } = view.value;
  const key = sort.replace(/^-/, "") as SortKey;
  if (KEYS.includes(key)) return { key, isDescending: sort.startsWith("-") };
  return { key: model.value?.sides == null ? "self" : "change", isDescending: true };
});

const all = computed(() => {
  const tree = model.value;
  if (tree === null || groups.value === null) return [];
  return tableRows(tree, zoomed.value, groups.value, groups.value.by === "" ? functions.value : null);
});
const matching = computed(() => {
  const frames = found.value;
  if (frames === null || groups.value === null) return all.value;
  // A module is found by any of its functions.
  const { of, size } = groups.value;
  const isFound = new Uint8Array(size);
  for (let f = 0; f < of.length; f++) if (frames[f] === 1 && of[f] < size) isFound[of[f]] = 1;
  return all.value.filter(({ group }) => isFound[group] === 1);
});
const rows = computed(() => {
  const { key, isDescending } = sorting.value;
  return groups.value === null ? [] : sortRows(groups.value, [...matching.value], key, isDescending);
});

const ROWS: readonly [RowsBy, string][] = [["", "functions"], ["module", "modules"], ["file", "source files"]];

// What a row is called: [one, many, the head of their column].
const WORDS: Record<RowsBy, [string, string, string]> = {
  "": ["function", "functions", "Function"], module: ["module", "modules", "Module"], file: ["source file", "source files", "Source file"],
};

const scrolled = signal(0);
const height = signal(400);

function Head({ name, sortKey, children }: { name: string; sortKey: SortKey; children: string }) {
  const { key, isDescending } = sorting.value;
  const isSorted = key === sortKey;
  const next = isSorted ? !isDescending : sortKey !== "name";
  return (
    <div role="columnheader" class={`cell ${name}`} aria-sort={isSorted ? (isDescending ? "descending" : "ascending") : "none"}>
      <button type="button" onClick={() => look({ sort: `${next ? "-" : ""}${sortKey}` }, "replace")}>
        {children}<span aria-hidden="true">{isSorted ? (isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </div>
  );
}

function Share({ part, whole }: { part: number; whole: number }) {
  const width = whole === 0 ? 0 : (100 * part) / whole;
  return (
    <div role="gridcell" class="cell number">
      <i class="meter" style={{ width: `${width}%` }} />
      <span>{share(part, whole)}</span><small>{isTimed.value && about.value !== null ? seconds(part * worth(about.value)) : count(part)}</small>
    </div>
  );
}

// Of one side of a comparison: a share of that side, or of a CPU, as the two are compared.
function Figure({ samples, scale }: { samples: number; scale: number }) {
  const facts = profile.answer.value;
  const each = facts === null || !comparesSides(facts) ? 0 : worth(facts.after);
  return (
    <div role="gridcell" class="cell number" title={amount(samples, each)}><span>{share(samples * scale, 1)}</span></div>
  );
}

function Change({ change, largest }: { change: number; largest: number }) {
  return (
    <div role="gridcell" class="cell change">
      <i class={change > 0 ? "more" : "less"} style={{ width: `${largest === 0 ? 0 : (50 * Math.abs(change)) / largest}%` }} />
      <span>{changeText(change)}</span>
    </div>
  );
}

interface RowProperties {
  row: TableRow;
  index: number;
  isSelected: boolean;
  isNarrow: boolean;
  largest: { self: number; total: number }; // changes
}

function Row({ row, index, isSelected, isNarrow, largest }: RowProperties) {
  const tree = model.value!;
  const { sides } = tree;
  const { by } = groups.value!;
  const key = groups.value!.name(row.group);
  const name = printable(key, 400);
  return (
    <div role="row" id={`function-${index}`} class={isSelected ? "function-row selected" : "function-row"} aria-rowindex={index + 2} aria-selected={isSelected}
      style={{ transform: `translateY(${index * ROW}px)` }} data-index={index} data-name={key}>
      <div role="gridcell" class="cell name" title={name}><bdi>{name}</bdi><small>{printable(groups.value!.note(row.group), 100)}</small></div>
      {sides === null ? (
        <>
          <Share part={row.self} whole={tree.value[zoomed.value]} />
          <Share part={row.total} whole={tree.value[zoomed.value]} />
        </>
      ) : (
        <>
          <Figure samples={row.selfBefore} scale={sides.scales.before} />
          <Figure samples={row.self} scale={sides.scales.after} />
          <Change change={row.changeSelf} largest={largest.self} />
          {!isNarrow && (
            <>
              <Figure samples={row.totalBefore} scale={sides.scales.before} />
              <Figure samples={row.total} scale={sides.scales.after} />
              <Change change={row.changeTotal} largest={largest.total} />
            </>
          )}
          {by === "" && (
            <div role="gridcell" class="cell mark" title={`${Math.abs(row.z ?? 0).toFixed(1)} standard deviations of chance`}>
              {row.isSignificant ? <b>significant</b> : <small>may be chance</small>}
            </div>
          )}
        </>
      )}
    </div>
  );
}

interface TableProperties {
  choose?: (name: string) => void; // the action of a click on a row besides selecting it
  isNarrow?: boolean;
}

// To make and sort the rows of twenty thousand functions takes longer than the rest of a view, which is painted first.
export function FunctionTable(properties: TableProperties) {
  const [isPainted, setPainted] = useState(false);
  useEffect(() => setPainted(true), []); // effects run after painting
  return isPainted ? <Table {...properties} /> : <div class="table" />;
}

function Table({ choose, isNarrow = false }: TableProperties) {
  const body = useRef<HTMLDivElement>(null);
  const tree = model.value;
  const list = rows.value;
  const known = groups.value;
  const selectedName = chosenRow.value;
  const selected = selectedName === "" || known === null ? -1 : list.findIndex(({ group }) => known.name(group) === selectedName);

  useEffect(() => {
    const box = body.current!;
    const observer = new ResizeObserver(() => (height.value = box.clientHeight));
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  // Scrolls to a function that was selected elsewhere.
  useLayoutEffect(() => {
    const box = body.current!;
    if (selected === -1) return;
    const y = selected * ROW;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW > box.scrollTop + box.clientHeight - HEAD) box.scrollTop = y + ROW - box.clientHeight + HEAD;
  }, [selected]);

  if (tree === null || known === null) return <div class="table" ref={body} />;
  const [one, many, column] = WORDS[known.by];
  const isDiff = tree.sides !== null;
  const first = Math.max(0, Math.floor(scrolled.value / ROW) - SPARE);
  const last = Math.min(list.length, Math.ceil((scrolled.value + height.value) / ROW) + SPARE);
  const largest = { self: 0, total: 0 };
  if (isDiff) {
    for (const row of list) {
      largest.self = Math.max(largest.self, Math.abs(row.changeSelf));
      largest.total = Math.max(largest.total, Math.abs(row.changeTotal));
    }
  }

  const take = (index: number, how: "push" | "replace" = "replace") => {
    const row = list[index];
    if (row === undefined) return;
    const name = known.name(row.group);
    chooseRow(name, how);
    choose?.(name);
  };
  // A function's callers and callees; another row's place in the graph.
  const enter = (index: number) => {
    if (list[index] === undefined) return;
    if (known.by === "") showSandwich(known.name(list[index].group));
    else if (!isBeside.peek()) look({ mode: "icicle", beside: true });
  };
  const indexOf = (event: Event) => {
    const row = (event.target as Element).closest<HTMLElement>("[data-index]");
    return row === null ? -1 : Number(row.dataset.index);
  };
  const menuAt = (index: number, x: number, y: number) => {
    if (list[index] !== undefined) openNameMenu(known, list[index].group, x, y, body.current!);
  };
  const key = (event: KeyboardEvent) => {
    if (event.target !== body.current) return;
    const page = Math.max(1, Math.floor(height.value / ROW) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -list.length, End: list.length };
    if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
      take(Math.max(0, Math.min(list.length - 1, (selected === -1 && steps[event.key] > 0 ? -1 : selected) + steps[event.key])));
    } else if (event.key === "Enter" && selected !== -1) {
      enter(selected);
    } else if ((event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) && selected !== -1) {
      const box = body.current!.querySelector(`[data-index="${selected}"]`)?.getBoundingClientRect();
      if (box !== undefined) menuAt(selected, box.left + 40, box.bottom);
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div class={`table${isDiff ? " diff" : ""}${isNarrow ? " narrow" : ""}${known.by === "" ? "" : " whole-parts"}`}>
      <div role="grid" class="grid" aria-label={many[0].toUpperCase() + many.slice(1)} aria-rowcount={list.length + 1} tabIndex={0} ref={body} onKeyDown={key}
        aria-activedescendant={selected >= first && selected < last ? `function-${selected}` : undefined}
        onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}>
        <div role="rowgroup" class="head">
          <div role="row" class="function-row" aria-rowindex={1}>
            <Head name="name" sortKey="name">{column}</Head>
            {isDiff ? (
              <>
                <div role="columnheader" class="cell number">{isNarrow ? "Before" : "Self before"}</div>
                <Head name="number" sortKey="self">After</Head>
                <Head name="change" sortKey="change">{isNarrow ? "Change" : "Change of self"}</Head>
                {!isNarrow && (
                  <>
                    <div role="columnheader" class="cell number">Total before</div>
                    <Head name="number" sortKey="total">After</Head>
                    <Head name="change" sortKey="change-total">Change of total</Head>
                  </>
                )}
                {known.by === "" && <div role="columnheader" class="cell mark">Chance</div>}
              </>
            ) : (
              <>
                <Head name="number" sortKey="self">Self</Head>
                <Head name="number" sortKey="total">Total</Head>
              </>
            )}
          </div>
        </div>
        <div role="rowgroup" class="rows" style={{ height: `${list.length * ROW}px` }}
          onClick={(event) => take(indexOf(event))}
          onDblClick={(event) => enter(indexOf(event))}
          onContextMenu={(event) => {
            event.preventDefault();
            take(indexOf(event));
            menuAt(indexOf(event), event.clientX, event.clientY);
          }}>
          {list.slice(first, last).map((row, i) => (
            <Row key={row.group} row={row} index={first + i} isSelected={first + i === selected} isNarrow={isNarrow} largest={largest} />
          ))}
        </div>
        {list.length === 0 && <p class="nothing">No {one} matches.</p>}
      </div>
      <div class="foot">
        <p class="sum">{count(list.length)} {list.length === 1 ? one : many}{found.value === null ? "" : ` of ${count(all.value.length)}`}</p>
        {mode.value !== "sandwich" && mode.value !== "code" && (
          <label class="choice">Table of
            <select id="rows" value={known.by} onChange={(event) => look({ rows: event.currentTarget.value as RowsBy, part: "" })}>
              {ROWS.map(([key, label]) => <option key={key} value={key}>{label}</option>)}
            </select>
          </label>
        )}
      </div>
    </div>
  );
}

