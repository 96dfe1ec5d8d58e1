// page.mjs FILE: runs the module script of an HTML file with a document that only builds tables, and prints them as JSON:
// a list of tables {caption, rows}, rows of cells {textContent, style}.
import {readFileSync} from "node:fs";

class Table {
    rows = [];
    caption = {};
    createCaption() {
        return this.caption;
    }
    insertRow() {
        const cells = [];
        this.rows.push(cells);
        return {insertCell: () => {
            cells.push({style: {}});
            return cells.at(-1);
        }};
    }
}

const tables = [];
globalThis.document = {
    createElement(name) {
        if (name !== "table")
            throw new Error(`page.mjs makes no ${name}`);
        return new Table();
    },
    body: {appendChild(table) {
        tables.push(table);
        return table;
    }},
};

const script = readFileSync(process.argv[2], "utf8").match(/<script type="module">(.*)<\/script>/s)[1];
await import(`data:text/javascript,${encodeURIComponent(script)}`);
console.log(JSON.stringify(tables));
