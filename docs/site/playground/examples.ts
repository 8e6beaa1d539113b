// The examples of the playground: a tool, and a call with one kind of fault.
const flight = `{
  "name": "book_flight",
  "parameters": {
    "type": "object",
    "properties": {
      "from": { "type": "string", "pattern": "^[A-Z]{3}$" },
      "to": { "type": "string", "pattern": "^[A-Z]{3}$" },
      "passengers": { "type": "integer", "minimum": 1 },
      "cabin": { "enum": ["economy", "business", "first"] },
      "return_date": { "type": "string", "format": "date" }
    },
    "required": ["from", "to"],
    "additionalProperties": false
  }
}`

const readFile = `{
  "type": "function",
  "function": {
    "name": "read_file",
    "parameters": {
      "type": "object",
      "properties": {
        "file_path": { "type": "string" },
        "limit": { "type": "integer" }
      },
      "required": ["file_path"],
      "additionalProperties": false
    }
  }
}`

export const examples = [
  { name: 'null for an optional value', tool: flight, call: '{"from": "OSL", "to": "LHR", "return_date": null}' },
  { name: 'a number as text', tool: flight, call: '{"from": "OSL", "to": "LHR", "passengers": "2"}' },
  { name: 'the wrong name of a property', tool: readFile, call: '{"path": "notes.txt"}' },
  { name: 'truncated JSON', tool: readFile, call: '{"file_path": "notes.txt", "limit": 1' },
  { name: 'a value outside the enum', tool: flight, call: '{"from": "OSL", "to": "LHR", "cabin": "premium"}' },
  { name: 'an unknown tool', tool: readFile, call: '{"name": "open_file", "arguments": {"file_path": "notes.txt"}}' },
  { name: 'a valid call', tool: readFile, call: '{"file_path": "notes.txt", "limit": 10}' },
]
