// SPDX-License-Identifier: Apache-2.0

// A short program whose code grows all the time: loads modules, then runs for 100 ms.
'use strict';

for (const name of ['crypto', 'events', 'fs', 'http', 'https', 'net', 'path', 'readline', 'stream', 'url', 'util', 'zlib']) {
  require(name);
}
const end = Date.now() + 100;
const counts = {};
for (let i = 0; Date.now() < end; i++) {
  counts['key' + (i % 999)] = JSON.parse(JSON.stringify({i, list: [1, 2, {text: String(i)}]}));
  [3, 1, 2].sort((a, b) => a - b).map((n) => n + i);
}
