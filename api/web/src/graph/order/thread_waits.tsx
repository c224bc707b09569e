// SPDX-License-Identifier: Apache-2.0
// The waiting time of one thread by reason, and who held the locks for which it waited. They are not shown in the order
// of time.
import type { ThreadUsage } from "../../answers";
import { choose } from "../../measure";
import { percent, printable, seconds } from "../../text";
import { REASON_TEXTS, classOf, listed } from "../../waits";
import { threads } from "./order_state";

const MOST_HOLDERS = 10;

export function ThreadWaits({ thread }: { thread: ThreadUsage | null }) {
  const answer = threads.answer.value;
  if (answer === null || thread === null) return <div class="thread-waits" />;
  const { used } = answer.window;
  const windowSeconds = (used.to_ms - used.from_ms) / 1000;
  const waits = listed(thread.waits ?? {}).sort(([, a], [, b]) => b - a);
  const waited = waits.reduce((sum, [, time]) => sum + time, 0);
  const rest = thread.cpu_seconds - waited;
  const holders = thread.holders ?? [];
  return (
    <div class="thread-waits" id="thread-waits">
      <p>
        <b><bdi>{printable(thread.comm, 100)}</bdi></b> waited {seconds(waited)} of {seconds(windowSeconds)}
        {answer.measure === "wall" && rest > 0 && <>, and was on a CPU for {seconds(rest)}</>}.
      </p>
      <table>
        <caption class="visually-hidden">Waiting time by reason</caption>
        <thead><tr><th scope="col">Waits for</th><th scope="col">Time</th><th scope="col">Of the window</th></tr></thead>
        <tbody>
          {waits.map(([reason, time]) => (
            <tr key={reason} data-reason={reason}>
              <th scope="row"><i class={`swatch ${classOf(reason)}`} />{REASON_TEXTS[reason].name} <small>{REASON_TEXTS[reason].what}</small></th>
              <td>{seconds(time)}</td><td>{percent(time, windowSeconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {holders.length > 0 && (
        <table id="lock-holders">
          <caption class="visually-hidden">Who held the locks</caption>
          <thead><tr><th scope="col">Lock held by</th><th scope="col">Time</th><th scope="col">Of the lock's</th></tr></thead>
          <tbody>
            {holders.slice(0, MOST_HOLDERS).map(({ tid, comm, seconds: time }) => (
              <tr key={tid} data-holder={tid}>
                <th scope="row"><bdi>{comm === null ? "Thread" : printable(comm, 100)}</bdi> <small>{tid}</small></th>
                <td>{seconds(time)}</td><td>{percent(time, thread.waits?.lock ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p class="note">
        Only CPU time is shown in the order of time; waits are summed up.{" "}
        <button type="button" class="quiet" onClick={() => choose("")}>Show CPU time</button>
      </p>
    </div>
  );
}
