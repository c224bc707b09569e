// SPDX-License-Identifier: Apache-2.0
// One function: its samples by source line or by instruction.
import { useLayoutEffect, useRef } from "preact/hooks";

import type { FunctionInstructions, FunctionLines } from "../../answers";
import { isTimed } from "../../measure";
import { base, look, view } from "../../state";
import { Waiting } from "../../states";
import { count, percent, printable } from "../../text";
import { byFile, MOST_ROWS, rowsOf } from "./code_rows";
import { instructions, isByInstruction, lines } from "./code_state";
import { middle, showCode } from "../shown/shown";
import { FunctionTable } from "../table/table";

const BY: readonly ["" | "instructions", string][] = [["", "Source lines"], ["instructions", "Instructions"]];

// A cell with its share of the function's own samples; empty without samples.
function Own({ self, whole }: { self: number; whole: number }) {
  if (self === 0) return <td />;
  return <td class="own"><i class="meter" style={{ width: `${(100 * self) / whole}%` }} />{percent(self, whole)}{!isTimed.value && <small>{count(self)}</small>}</td>;
}

function Lines({ answer }: { answer: FunctionLines }) {
  return (
    <>
      {byFile(answer.lines, answer.texts).map(({ file, module, rows, text }) => {
        const hasText = text !== null && text.lines.length > 0;
        return (
          <table key={`${module}\0${file}`} class="code-table">
            <caption>
              <bdi>{file === "" ? "No source line is known" : printable(file, 300)}</bdi> {module !== "" && <small>{printable(module, 100)}</small>}
              {text?.newer && <small class="bad"> The file is newer than the program: its lines may have moved.</small>}
              {text !== null && text.reason !== null && <small class="bad"> {hasText ? "Not all text" : "No text"}: {printable(text.reason, 400)}.</small>}
            </caption>
            <thead><tr><th scope="col">Line</th><th scope="col">Self</th><th scope="col">Total</th>{hasText && <th scope="col">Source</th>}</tr></thead>
            <tbody>
              {rows.map(({ line, self, total, text: words, isAfterGap }) => (
                <tr key={line} class={isAfterGap ? "after-gap" : ""} data-line={line ?? ""} data-self={self}>
                  <th scope="row">{line ?? "–"}</th><Own self={self} whole={answer.self} />
                  <td>{total === 0 ? "" : percent(total, answer.samples)}</td>
                  {hasText && <td class={total === 0 ? "source around" : "source"}><code>{words ? printable(words, 420) : ""}</code></td>}
                </tr>
              ))}
            </tbody>
          </table>
        );
      })}
    </>
  );
}

function Instructions({ answer }: { answer: FunctionInstructions }) {
  let room = MOST_ROWS;
  return (
    <>
      {answer.parts.map(({ module, around, reason, instructions: all }, index) => {
        const rows = rowsOf({ module, around, reason, self: 0, instructions: all }, room);
        room = Math.max(0, room - rows.length);
        return (
          <table key={index} class="code-table">
            <caption>
              <bdi>{module === null ? "Code without a module" : printable(module, 100)}</bdi>{around !== null && <> compiled into <bdi>{printable(around, 200)}</bdi></>}
              {reason !== null && <small class="bad"> Addresses alone: {printable(reason, 400)}.</small>}
              {rows.length < all.length && <small> {count(all.length - rows.length)} without samples are left out.</small>}
            </caption>
            <thead><tr><th scope="col">Address</th><th scope="col">Self</th><th scope="col">Callees</th><th scope="col">Instruction</th><th scope="col">Line</th></tr></thead>
            <tbody>
              {rows.map(({ instruction: { address, bytes, text, file, line, self, callees }, isAfterGap }, row) => (
                <tr key={address ?? row} class={isAfterGap ? "after-gap" : ""} data-address={address ?? ""} data-self={self}>
                  <th scope="row">{address ?? "–"}</th><Own self={self} whole={answer.self} />
                  <td>{callees === 0 ? "" : percent(callees, answer.samples)}</td>
                  <td class="text"><code>{text !== null ? printable(text, 300) : bytes}</code></td>
                  <td class="text">{line === undefined ? "" : <bdi>{printable(`${(file ?? "").replace(/^.*\//, "")}:${line}`, 120)}</bdi>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      })}
    </>
  );
}

export function Code() {
  const place = useRef<HTMLDivElement>(null);
  const name = middle.value;
  const asking = isByInstruction.value ? instructions : lines;
  const answer = asking.answer.value;
  const problem = asking.problem.value;
  // What took the most time is what is looked for.
  useLayoutEffect(() => {
    const all = [...(place.current?.querySelectorAll<HTMLElement>("[data-self]") ?? [])];
    const most = Math.max(...all.map(({ dataset }) => Number(dataset.self)));
    if (most > 0) all.find(({ dataset }) => Number(dataset.self) === most)?.scrollIntoView({ block: "center" });
  }, [answer]);
  return (
    <div class="sandwich">
      <FunctionTable choose={showCode} isNarrow />
      <div class="code">
        <div class="order-head" id="code-head">
          <b><bdi>{name === null ? "No function here" : printable(name, 300)}</bdi></b>
          <div class="segments" role="group" aria-label="Samples by" id="code-by">
            {BY.map(([key, label]) => <button key={key} type="button" data-by={key} aria-pressed={view.value.code === key} onClick={() => look({ code: key })}>{label}</button>)}
          </div>
        </div>
        <div class="code-rows" id="code" tabIndex={0} role="region" aria-label={isByInstruction.value ? "Instructions" : "Source lines"} ref={place}>
          <Waiting asking={asking as typeof lines} what={isByInstruction.value ? "the instructions" : "the lines"} />
          {problem !== null && <p class="nothing">{printable(problem.detail ?? problem.title ?? "")}</p>}
          {problem === null && answer !== null && answer.function === null && <p class="nothing">No stack of the selection has this function.</p>}
          {answer !== null && "lines" in answer && <Lines answer={answer} />}
          {answer !== null && "parts" in answer && <Instructions answer={answer} />}
        </div>
        {answer !== null && answer.function !== null && (
          <p class="note" id="code-note">
            {isTimed.value ? "" : `${count(answer.self)} own samples of ${count(answer.total)} with it. `}Shares of self are the function's own; the others are of all{base.value === null ? "" : ", of the later side"}.
          </p>
        )}
      </div>
    </div>
  );
}
