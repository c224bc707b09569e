// SPDX-License-Identifier: Apache-2.0
//
// One client of the Model Context Protocol, as whoever runs it: calls the tools that come on its standard input, and
// prints their answers.
//
//   node ask.mjs new|old URL < CALLS     CALLS: [{"name": ..., "arguments": {...}}, ...]
import { readFileSync } from 'node:fs';

const [, , age, url] = process.argv;
const info = { name: 'flamed-peer', version: '1' };

async function connect() {
  if (age === 'new') {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const client = new Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    return client;
  }
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const client = new Client(info);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
const answers = [];
for (const call of JSON.parse(readFileSync(0, 'utf8'))) {
  const answer = await client.callTool(call);
  answers.push({ isError: answer.isError === true, text: answer.content.map((part) => part.text).join('\n') });
}
console.log(JSON.stringify({ server: client.getServerVersion(), tools: tools.map((tool) => tool.name), answers }));
await client.close();
