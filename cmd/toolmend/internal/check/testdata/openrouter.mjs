// Reads calls as lines of {"schema": JSON text or null, "known": bool, "arguments": text}
// and writes the bucket of each, by the rules and with the validator of OpenRouter.
import { createInterface } from 'node:readline';
import { Validator } from '@cfworker/json-schema';

const validators = new Map();
function validator(schema) {
	if (!validators.has(schema)) {
		let v = null;
		try { v = new Validator(JSON.parse(schema), '7'); } catch {}
		validators.set(schema, v);
	}
	return validators.get(schema);
}

function bucket({ schema, known, arguments: text }) {
	let value;
	try { value = JSON.parse(text); } catch { return 'InvalidJson'; }
	if (!known) return 'UnknownName';
	const v = schema === null ? null : validator(schema);
	if (v === null) return 'valid';
	try { return v.validate(value).valid ? 'valid' : 'SchemaMismatch'; } catch { return 'valid'; }
}

for await (const line of createInterface({ input: process.stdin })) {
	process.stdout.write(bucket(JSON.parse(line)) + '\n');
}
