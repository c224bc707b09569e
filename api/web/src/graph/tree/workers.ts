// SPDX-License-Identifier: Apache-2.0
// The page's end of worker.ts: one worker reads answers, another matches names and is ended when it takes too long.

import type { Read } from "./columns";
import type { Frames } from "./frames";
import { NameIndex, regularExpression } from "./search";
import type { Job, Outcome } from "./worker";

type Task = Job extends infer Each ? (Each extends Job ? Omit<Each, "id"> : never) : never;

class Helper {
  readonly #worker = new Worker("./worker.js", { type: "module" });
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #last = 0;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Outcome>) => {
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("error" in data) waiting?.reject(new (data.isSyntax ? SyntaxError : Error)(data.error));
      else waiting?.resolve(data.result);
    };
    this.#worker.onerror = (event) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(event.message || "the page's worker could not be started"));
      this.#waiting.clear();
    };
  }

  do<Result>(task: Task, transfer: Transferable[] = []): Promise<Result> {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject });
      this.#worker.postMessage({ id, ...task }, transfer);
    });
  }

  end() {
    this.#worker.terminate();
  }
}

let reader: Helper | null = null;

// Before there is an answer to read, so that no answer waits for its start.
export function startReader() {
  if (reader !== null) return;
  reader = new Helper();
  void reader.do({ task: "practise" }).catch(() => {});
}

// Transfers the bytes away from the caller.
export function readAnswer(bytes: ArrayBuffer): Promise<Read> {
  startReader();
  return reader!.do<Read>({ task: "read", bytes }, [bytes]);
}

export class TooSlow extends Error {}

const PATIENCE_MS = 1500;

// Finds the frames whose names match a text. Plain text is searched at once. A regular expression runs in a worker,
// since it may never end.
export class NameSearch {
  readonly #frames: Frames;
  #index: NameIndex | null = null;
  #helper: Helper | null = null;

  constructor(frames: Frames) {
    this.#frames = frames;
  }

  // Does most of the first search's work, for when the user is about to type.
  prepare(): NameIndex {
    return (this.#index ??= new NameIndex(this.#frames.texts.all()));
  }

  // By frame, 1 if it matches. Rejects with the expression's error, or with TooSlow.
  async find(text: string): Promise<Uint8Array> {
    const { data: { name } } = this.#frames;
    const expression = regularExpression(text);
    const found = expression === null ? this.prepare().find(text) : await this.#findElsewhere(text);
    const byFrame = new Uint8Array(name.length);
    for (let f = 0; f < name.length; f++) byFrame[f] = found[name[f]];
    return byFrame;
  }

  end() {
    this.#helper?.end();
    this.#helper = null;
  }

  async #findElsewhere(text: string): Promise<Uint8Array> {
    if (this.#helper === null) {
      this.#helper = new Helper();
      void this.#helper.do({ task: "names", names: this.#frames.texts.all() }).catch(() => {});
    }
    const helper = this.#helper;
    let timer = 0;
    const patience = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        helper.end();
        if (this.#helper === helper) this.#helper = null;
        reject(new TooSlow("takes too long: write it without nested repetitions"));
      }, PATIENCE_MS);
    });
    try {
      return await Promise.race([helper.do<Uint8Array>({ task: "match", text }), patience]);
    } finally {
      clearTimeout(timer);
    }
  }
}
