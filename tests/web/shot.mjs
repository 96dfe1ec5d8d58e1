import { chromium } from "playwright-core";
import fs from "node:fs";
const url = fs.readFileSync("/tmp/page/url", "utf8").trim() + "/";
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const [, , name, preset = "", width = "1280", scheme = "light", step = "", tab = ""] = process.argv;
const page = await browser.newPage({ viewport: { width: Number(width), height: 860 }, colorScheme: scheme });
page.on("console", (m) => console.log("console:", m.text()));
page.on("pageerror", (e) => console.log("error:", e.stack));
await page.goto(url);
await page.waitForSelector(".stage h2:not(:empty)", {timeout: 5000}).catch((e) => console.log(e.message));
if (preset) { await page.selectOption(".bar select", preset); await page.waitForTimeout(preset === "large" ? 4000 : 700); }
if (step) await page.click(`.strip button:has-text("${step}")`);
if (tab) await page.click(`[role=tab]:has-text("${tab}")`);
await page.waitForTimeout(500);
await page.screenshot({ path: `/tmp/page/${name}.png`, fullPage: true });
console.log(await page.evaluate(() => document.querySelectorAll("*").length), await page.evaluate(() => document.documentElement.scrollWidth));
await browser.close();
