/* orval.config.cjs: orval's client by fetch. Its addresses are in the generated file, so the server is known before. */
const { DOCUMENT: input, TARGET: target, SERVER: baseUrl } = process.env;
module.exports = { attnd: { input, output: { target, client: "fetch", baseUrl } } };
