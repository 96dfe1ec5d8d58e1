/**
 * docs.mjs: the page of GET /docs: every operation is shown, and what its form starts with is answered.
 */
import assert from "node:assert/strict";
import { openPage } from "../support.mjs";

const shown = (page) => page.waitForFunction(() => document.querySelector("main h1") && document.querySelector("nav a"));
const open = (stage, options, address = "/docs") => openPage(stage, options, address, shown);

/** Sends the form, and gives what the page says of the answer. */
async function send(page) {
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".result .status").waitFor();
  return page.locator(".result .status").textContent();
}

/** Operations on a cache need one that holds something. */
async function keepCacheOfExamples(url) {
  const { components } = await (await fetch(url + "/openapi.json")).json();
  const name = components.parameters.CacheInPath.example, headers = { "Content-Type": "application/json" };
  await fetch(`${url}/v1/caches/${name}`, { method: "DELETE" });
  const body = JSON.stringify({ inputs: { query: [[0.5, 0.25]] }, options: { cache: name } });
  await fetch(`${url}/v1/attention`, { method: "POST", headers, body });
}

/** Operations on a layer need one: that of the document's own example. */
async function layerOfExamples(url) {
  const { paths, components } = await (await fetch(url + "/openapi.json")).json();
  const { content } = paths["/v1/layers/{name}"].put.requestBody;
  const [{ value }] = Object.values(content["application/json"].examples);
  const address = `${url}/v1/layers/${components.parameters.LayerInPath.example}`;
  const headers = { "Content-Type": "application/json" };
  return {
    keep: () => fetch(address, { method: "PUT", headers, body: JSON.stringify(value) }),
    remove: () => fetch(address, { method: "DELETE" }),
  };
}

export const cases = {
  async "docs: every operation opens, with all its schemas and examples, and its request succeeds"(stage) {
    const page = await open(stage), layer = await layerOfExamples(stage.url);
    const links = await page.locator("nav section a").evaluateAll((all) => all.map((link) => link.hash));
    for (const hash of links) {
      if (hash.includes("Layer")) await layer.keep();
      if (hash.includes("Cache")) await keepCacheOfExamples(stage.url);
      await page.evaluate((to) => { location.hash = to; }, hash);
      await page.locator(`nav a[href="${hash}"][aria-current]`).waitFor({ state: "attached" });
      await page.evaluate(() => document.querySelectorAll("main details").forEach((box) => { box.open = true; }));
      // The form starts with the model that is built in: it is neither loaded nor unloaded.
      assert.match(await send(page), hash === "#inferUnload" ? /^409/ : /^20[04]/, hash);
    }
    await layer.remove();
    await page.finish();
    return `${links.length} operations`;
  },
  async "docs: a picture is shown as one, by a deep link and the keyboard"(stage) {
    const page = await open(stage, { colorScheme: "dark" }, "/docs#attention");
    await page.getByLabel("Accept", { exact: true }).selectOption("image/png");
    await page.getByLabel("Body", { exact: true }).focus();
    await page.keyboard.press("Control+Enter");
    await page.locator("img.shown").waitFor();
    assert.ok(await page.locator("img.shown").evaluate((image) => image.decode().then(() => image.naturalWidth > 50)));
    await page.finish();
  },
  async "docs: every example of a body can be chosen and sent"(stage) {
    const page = await open(stage, {}, "/docs#attention");
    const choice = page.getByLabel("Example", { exact: true }), count = await choice.locator("option").count();
    for (let index = 0; index < count; index++) {
      await choice.selectOption(String(index));
      assert.match(await send(page), /^[24]0/);
      await page.evaluate(() => document.querySelector(".result").replaceChildren());
    }
    await page.finish();
    return `${count} examples`;
  },
  async "docs: nothing is wider than a small screen"(stage) {
    const page = await open(stage, { viewport: { width: 360, height: 800 } }, "/docs#multiHeadAttention");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.finish();
  },
};
