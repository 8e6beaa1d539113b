// Calls tools of an MCP server with the official SDK for TypeScript. Argument and
// output are those of ../python/mcpcalls.py. NODE_MODULES is the folder of packages.
import { createRequire } from 'node:module';

const require = createRequire(process.env.NODE_MODULES + '/');
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

const task = JSON.parse(process.argv[2]);
const client = new Client({ name: 'e2e', version: '1' });
await client.connect(new StdioClientTransport({ command: task.command, args: task.args, stderr: 'ignore' }));
for (const call of task.calls) {
  let error, text;
  try {
    const result = await client.callTool({ name: call.tool, arguments: call.args });
    error = result.isError === true;
    text = result.content.map((c) => c.text ?? '').join(' ');
  } catch (e) {
    error = true;
    text = String(e.message);
  }
  console.log(JSON.stringify({ error, text }));
}
await client.close();
