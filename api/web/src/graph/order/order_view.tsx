// SPDX-License-Identifier: Apache-2.0
// The threads of the selection, those with the most CPU use first, and what one of them did in the order of time.
import type { ThreadUsage } from "../../answers";
import { isCpu } from "../../measure";
import { look } from "../../state";
import { Waiting } from "../../states";
import { brief, count, percent, printable } from "../../text";
import { moment } from "../../time/ticks";
import { classOf, listed } from "../../waits";
import { FlameBox } from "../shown/flame_box";
import { lasting } from "../drawing/labels";
import type { Model } from "../tree/model";
import { chosen, chosenKey, isCut, isZoomed, keyOf, order, ordered, range, samples, threads } from "./order_state";
import { ThreadWaits } from "./thread_waits";

const MOST_TRACKS = 100;

// With a thousandth of a millisecond, since calls may be as short as a sample.
function zoom(model: Model, node: number) {
  if (node === 0) return look({ at: "" });
  const from = model.startMs! + model.start[node] / 1000;
  return look({ at: `${from.toFixed(3)}-${(from + model.value[node] / 1000).toFixed(3)}` });
}

// The reasons one after the other, each as long as its time.
function WaitBar({ waits, all, most }: { waits: NonNullable<ThreadUsage["waits"]>; all: number; most: number }) {
  const parts = listed(waits);
  const rest = all - parts.reduce((sum, [, time]) => sum + time, 0);
  const width = (time: number) => `${most === 0 ? 0 : Math.max(0, (100 * time) / most)}%`;
  return (
    <span class="wait-bar" aria-hidden="true">
      {parts.map(([reason, time]) => <i key={reason} class={classOf(reason)} style={{ width: width(time) }} />)}
      <i class="wait-rest" style={{ width: width(rest) }} />
    </span>
  );
}

function Track({ thread, most, all }: { thread: ThreadUsage; most: number; all: number }) {
  const { comm, tid, process, cpu_seconds, waits } = thread;
  const key = keyOf(thread);
  const isMain = tid === process.pid;
  return (
    <li>
      <button type="button" class="track" aria-pressed={key === chosenKey.value} data-track={key} onClick={() => look({ track: key })}>
        {waits === undefined && <i style={{ width: `${most === 0 ? 0 : (100 * cpu_seconds) / most}%` }} />}
        {waits !== undefined && <WaitBar waits={waits} all={cpu_seconds} most={most} />}
        <span><bdi>{printable(comm, 100)}</bdi> <small>{isMain ? `${tid} · main` : process.comm === comm ? tid : `${tid} of ${printable(process.comm, 60)}`}</small></span>
        <span class="cpu">{brief(cpu_seconds)} <small>{percent(cpu_seconds, all)}</small></span>
      </button>
    </li>
  );
}

function Tracks() {
  const answer = threads.answer.value;
  const all = answer?.threads ?? [];
  const others = all.slice(MOST_TRACKS);
  return (
    <div class="tracks">
      <h3 id="tracks-title">Threads <small>{answer === null ? "" : count(all.length)}</small></h3>
      <Waiting asking={threads} what="the threads" />
      <ul id="tracks" aria-labelledby="tracks-title">
        {all.slice(0, MOST_TRACKS).map((thread) => <Track key={keyOf(thread)} thread={thread} most={all[0].cpu_seconds} all={answer!.cpu_seconds} />)}
      </ul>
      {others.length > 0 && <p class="note">{count(others.length)} others {isCpu.value ? "used" : "had"} {brief(others.reduce((sum, { cpu_seconds }) => sum + cpu_seconds, 0))}</p>}
    </div>
  );
}

const TICKS = 4;

export function TimeOrder({ say }: { say: (text: string) => void }) {
  const now = range.value;
  const problem = samples.problem.value ?? threads.problem.value;
  const notes: string[] = [];
  if (isCut.value) notes.push("The last 15 minutes of the window.");
  if (order.value !== null && order.value.merged > 0) {
    notes.push(`${count(order.value.merged)} calls shorter than ${lasting(order.value.leastUs)} are drawn as a part of what called them: zoom in to see them.`);
  }
  notes.push(...(samples.answer.value?.warnings ?? []).map((warning) => printable(warning)));
  return (
    <div class="sandwich" onKeyDown={(event) => event.key === "Escape" && isZoomed.peek() && look({ at: "" })}>
      <Tracks />
      {!isCpu.value && <div class="order"><ThreadWaits thread={chosen.value} /></div>}
      {isCpu.value && <div class="order">
        <p class="order-head" id="order-head">
          <b><bdi>{chosen.value === null ? "No thread" : printable(chosen.value.comm, 100)}</bdi></b>
          {now !== null && <span>{moment(now.from)} – {moment(now.to)}, {lasting((now.to - now.from) * 1000)}</span>}
          {isZoomed.value && <button type="button" class="quiet" onClick={() => look({ at: "" })}>Show all</button>}
        </p>
        <p class="order-axis" aria-hidden="true">
          {now !== null && Array.from({ length: TICKS }, (_, tick) => <span key={tick}>{moment(now.from + ((now.to - now.from) * tick) / TICKS)}</span>)}
        </p>
        <div class="half-graph">
          <Waiting asking={samples} what="the thread's samples" />
          <FlameBox id="graph-time" label="What the thread did, in the order of time" shown={ordered} say={say} select={() => {}} zoom={zoom} />
          {problem !== null && <p class="nothing">{printable(problem.detail ?? problem.title ?? "")}</p>}
        </div>
        {notes.length > 0 && <p id="order-note" class="note">{notes.join(" ")}</p>}
      </div>}
    </div>
  );
}
