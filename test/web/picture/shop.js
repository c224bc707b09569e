// SPDX-License-Identifier: Apache-2.0
// A web shop: prints its port, answers visitors.py, and sums up the sales once a second.
"use strict";
const { createServer } = require("node:http");
const { gzipSync } = require("node:zlib");

const WORDS = ["red", "blue", "green", "small", "large", "light", "heavy", "cotton", "steel", "oak", "lamp", "chair", "table", "shirt", "boot", "kettle"];
const word = (seed) => WORDS[(seed * 2654435761) % 2 ** 32 % WORDS.length];

const catalogue = Array.from({ length: 3000 }, (_, id) => ({
  id, name: `${word(id)} ${word(id * 7 + 1)} ${word(id * 31 + 2)}`, cents: 100 + ((id * 7919) % 90000), sold: 0,
}));
const boughtWith = catalogue.map(() => new Map());

function score({ name }, words) {
  let points = 0;
  for (const each of words) {
    const at = name.indexOf(each);
    if (at >= 0) points += 100 - at + each.length;
  }
  return points;
}

function rank(words) {
  const found = [];
  for (const product of catalogue) {
    const points = score(product, words);
    if (points > 0) found.push({ product, points });
  }
  return found.sort((a, b) => b.points - a.points || a.product.cents - b.product.cents);
}

function renderProduct({ id, name, cents }) {
  const title = name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
  return `<li id="p${id}"><h2>${title}</h2><p>${(cents / 100).toFixed(2)} €</p></li>`;
}

const renderPage = (products) => `<!doctype html><title>Shop</title><ul>${products.map(renderProduct).join("\n")}</ul>`;

function search(query) {
  return renderPage(rank(query.split("+")).slice(0, 60).map(({ product }) => product));
}

function showProduct(query) {
  const product = catalogue[Number(query)];
  const related = [...boughtWith[product.id]].sort(([, a], [, b]) => b - a).slice(0, 20);
  return renderPage([product, ...related.map(([id]) => catalogue[id])]);
}

function priceOf(items) {
  return items.reduce((cents, { id, count }) => cents + catalogue[id].cents * count, 0);
}

function showBasket(query, body) {
  return JSON.stringify({ cents: priceOf(JSON.parse(body).items) });
}

function takeOrder(query, body) {
  const order = JSON.parse(body);
  for (const { id, count } of order.items) {
    catalogue[id].sold += count;
    for (const { id: other } of order.items.slice(0, 20)) boughtWith[id].set(other, (boughtWith[id].get(other) ?? 0) + 1);
  }
  return JSON.stringify({ ...order, cents: priceOf(order.items), taken: new Date() });
}

function listOffers() {
  return renderPage(catalogue.filter(({ sold }) => sold > 0).sort((a, b) => a.sold - b.sold).slice(0, 40));
}

const routes = { "/search": search, "/product": showProduct, "/basket": showBasket, "/order": takeOrder, "/offers": listOffers };

function send(response, text) {
  const bytes = gzipSync(text);
  response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.length });
  response.end(bytes);
}

function sumUp() {
  const turnover = new Map();
  for (let day = 0; day < 12; day++) {
    for (const { name, cents, sold } of catalogue) turnover.set(name, (turnover.get(name) ?? 0) + cents * sold);
  }
  return [...turnover].sort(([, a], [, b]) => b - a);
}
setInterval(sumUp, 1000);

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", function answer() {
    const [path, query] = request.url.split("?");
    send(response, routes[path](query, body));
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
