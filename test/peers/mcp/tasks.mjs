// SPDX-License-Identifier: Apache-2.0
//
// Questions with a known answer, asked of a running flamed through the real clients of both versions of the Model Context
// Protocol; users who ask at the same time; and requests that must be refused.
//
//   node tasks.mjs URL FACTS     FACTS: a file of JSON, see ../mcp.sh
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [, , base, factsFile] = process.argv;
const url = base + '/mcp';
const facts = JSON.parse(readFileSync(factsFile, 'utf8'));
const here = dirname(fileURLToPath(import.meta.url));
const mostBytes = 8192;

let failures = 0;
let checks = 0;
function check(what, holds, detail = '') {
  checks++;
  if (holds) return;
  failures++;
  console.log('FAIL', what, detail);
}

/** The tools' answers to one user. */
function ask(age, uid, calls) {
  const child = spawnSync(process.execPath, [join(here, 'ask.mjs'), age, url], {
    input: JSON.stringify(calls), encoding: 'utf8', uid, gid: uid, timeout: 60000,
  });
  if (child.status !== 0) throw new Error(`the client (${age}, uid ${uid}) failed: ${child.stderr}`);
  return JSON.parse(child.stdout);
}

/** The lines between the two marks. */
function data(text) {
  const found = /\[data ([0-9a-f]{16})\]\n([\s\S]*?)\n\[end \1\]/.exec(text);
  return found ? found[2].split('\n') : [];
}

const { chain, waits, slower, from, changed, to } = facts;
const whole = { from: `${from}`, to: `${to}` };
/** Each with the call that answers it, and whether the answer is right. */
const tasks = [
  ['what is this process busy with?', 'summary', { ...whole, pid: chain.pid },
    (lines) => lines[0].includes('hottest function is work_two')],
  ['how much of its time is the hottest function?', 'functions', { ...whole, pid: [chain.pid] }, (lines) => {
    const samples = Number(lines[0].split(' ')[0]);
    const share = Number(/([0-9.]+)% .*work_two/.exec(lines[2])?.[1]) / 100;
    return Math.abs(share - 2 / 3) <= 3 * Math.sqrt(2 / 9 / samples);
  }],
  ['who calls the hottest function?', 'stacks', { ...whole, pid: chain.pid },
    (lines) => /main;outer;middle;work_two$/.test(lines.find((line) => line.includes('%')) ?? '')],
  ['which line is it?', 'functions', { ...whole, pid: chain.pid, lines: true },
    (lines) => lines[2].includes(`known_chain.c:${chain.line}`)],
  ['which lines of the function?', 'source', { ...whole, pid: chain.pid, function: 'work_two' },
    (lines) => lines.some((line) => line.includes(`known_chain.c:${chain.line}`))],
  ['which instructions of the function?', 'instructions', { ...whole, pid: chain.pid, function: 'work_two' },
    (lines) => lines.some((line) => /^ +[0-9]+ +[0-9.]+% .* [0-9a-f]+  [a-z]+ .*# known_chain\.c:[0-9]+$/.test(line))],
  ['which process uses the CPU?', 'processes', { ...whole, group: 'process' },
    (lines) => lines.some((line) => line.includes(` ${chain.pid}@`))],
  ['which threads does the program have?', 'threads', { ...whole, pid: waits.pid, measure: 'wait' },
    (lines) => lines.some((line) => line.includes('holder  of'))],
  ['who held the lock?', 'threads', { ...whole, pid: waits.pid, measure: 'wait' },
    (lines) => lines.filter((line) => line.includes(`its lock was held by holder (${waits.holder})`)).length >= 2],
  ['why is it slow though it uses no CPU?', 'functions', { ...whole, pid: waits.pid, measure: 'wait' },
    (lines) => lines.slice(2, 5).some((line) => line.includes(' [lock]'))],
  ['what was this thread doing at that second?', 'samples', { from: `${changed}`, to: `${changed + 1}`, tid: chain.pid },
    (lines) => lines.some((line) => /\twork_(one|two) /.test(line) || /work_(one|two) \(/.test(line)) &&
      lines.some((line) => /middle \(/.test(line))],
  ['what changed?', 'compare', { from: `${changed + 1}`, to: `${to}`, base_from: `${from}`, base_to: `${changed}`, pid: slower.pid },
    (lines) => /^slower takes more of the CPU time than before/.test(lines[0])],
  ['when did it begin?', 'timeline', { from: `${from - 60}`, to: `${to}`, pid: chain.pid, step: '5s' }, (lines) => {
    const first = lines.slice(1).find((line) => /^2.*  +[0-9.]+ +[0-9.]+/.test(line) && Number(line.split(/ +/)[1]) > 0);
    return first !== undefined && Math.abs(Date.parse(first.split(/ +/)[0]) / 1000 - chain.began) <= 10;
  }],
  ['was something deployed?', 'marks', whole, (lines) => lines.some((line) => line.includes('note  deploy 1.2.3'))],
];

const ages = Number(process.versions.node.split('.')[0]) >= 20 ? ['new', 'old'] : ['old'];
if (!ages.includes('new')) console.log('SKIP the client of 2026-07-28: it needs Node 20');
for (const age of ages) {
  const began = Date.now();
  const { server, tools, answers } = ask(age, 0, tasks.map(([, name, args]) => ({ name, arguments: args })));
  check(`${age}: the server's name`, server?.name === 'flamed', JSON.stringify(server));
  check(`${age}: tools`, tools.includes('summary') && tools.length === 11, tools.join());
  let right = 0;
  tasks.forEach(([question, , , isRight], i) => {
    const lines = data(answers[i].text);
    const holds = !answers[i].isError && isRight(lines);
    right += holds ? 1 : 0;
    check(`${age}: ${question}`, holds, answers[i].text);
    check(`${age}: size of an answer`, Buffer.byteLength(JSON.stringify(answers[i].text)) <= mostBytes);
  });
  console.log(`${age}: ${right} of ${tasks.length} tasks in ${Date.now() - began} ms`);

  for (const [own, other] of [['alice', 'bob'], ['bob', 'alice']]) {
    const me = facts.users[own];
    const them = facts.users[other];
    const { answers: mine } = ask(age, me.uid, [
      { name: 'summary', arguments: whole }, { name: 'processes', arguments: { ...whole, group: 'process' } },
      { name: 'functions', arguments: { ...whole, pid: them.pid } }]);
    const text = mine.map((answer) => answer.text).join('\n');
    check(`${age}: ${own} sees the own program`, text.includes(`load-${own}`), text);
    check(`${age}: ${own} does not see ${other}'s`, !text.includes(`load-${other}`), text);
    check(`${age}: ${own} does not get ${other}'s process`, mine[2].isError && mine[2].text.includes('never seen'), text);
  }
}

// ---- Refusals ----

function send(method, headers, body) {
  return new Promise((resolve, reject) => {
    const all = body === undefined ? headers : { 'Content-Length': Buffer.byteLength(body), ...headers };
    const sent = request(url, { method, headers: all }, (response) => {
      let text = '';
      response.on('data', (piece) => (text += piece));
      response.on('end', () => resolve({ status: response.statusCode, text, headers: response.headers }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'summary', arguments: {}, _meta: meta } });
const headers = {
  'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'summary',
};
const without = (name) => Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
const refusals = [
  ['nothing wrong', 200, 'POST', headers, call],
  ['foreign Origin', 403, 'POST', { ...headers, Origin: 'http://evil.example' }, call],
  ['foreign Host', 403, 'POST', { ...headers, Host: 'evil.example:9090' }, call],
  ['no version', 400, 'POST', without('MCP-Protocol-Version'), call],
  ['no method', 400, 'POST', without('Mcp-Method'), call],
  ['no name', 400, 'POST', without('Mcp-Name'), call],
  ['another version', 400, 'POST', { ...headers, 'MCP-Protocol-Version': '2025-11-25' }, call],
  ['another method', 400, 'POST', { ...headers, 'Mcp-Method': 'tools/list' }, call],
  ['another name', 400, 'POST', { ...headers, 'Mcp-Name': 'stacks' }, call],
  ['cut', 400, 'POST', headers, call.slice(0, -20)],
  ['10,000 deep', 400, 'POST', headers, call.replace('"arguments":{}', `"arguments":{"x":${'['.repeat(1e4)}${']'.repeat(1e4)}}`)],
  ['a batch', 400, 'POST', headers, `[${call}]`],
  ['above 64 KiB', 413, 'POST', headers, call.padEnd((64 << 10) + 1, ' ')],
  ['no JSON', 415, 'POST', { ...headers, 'Content-Type': 'text/plain' }, call],
  ['GET', 405, 'GET', without('Content-Type')],
  ['DELETE', 405, 'DELETE', without('Content-Type')],
];
for (const [what, status, method, head, body] of refusals) {
  const answer = await send(method, head, body);
  check(`${what} is ${status}`, answer.status === status, `${answer.status} ${answer.text}`);
  check(`${what}: no session`, answer.headers['mcp-session-id'] === undefined);
  if (status === 200) check('size of a whole answer', answer.text.length <= mostBytes, `${answer.text.length}`);
}
console.log(`${checks - failures} of ${checks} checks hold`);
process.exit(failures === 0 ? 0 : 1);
